-- Lets in who brings x-custom-auth, and keeps that header from the upstream. An error in here never opens the door: 500.
local M = { stage = "auth" }

function M.on_request(req, ctx)
  local header = req.headers["x-custom-auth"]
  if not header then
    return gw.respond(401, "x-custom-auth is missing")
  end
  req.headers["x-custom-auth"] = nil
  ctx.user = header:match("^user:(.+)$"):lower() -- fails for a value of another form
end

return M
