-- Whatever path a client asks for on this route, the upstream gets this one. The query stays.
local M = {
  stage = "transform",
  config = { path = { "string", required = true, pattern = "^/" } },
}

function M.on_request(req, ctx, conf)
  req.path = conf.path
end

return M
