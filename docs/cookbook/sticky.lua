-- Sends each session to the same endpoint. The upstream says balance = "consistent_hash"; who has no session goes to each in turn.
local M = {
  stage = "route",
  config = { header = { "string", default = "X-Session", doc = "what names the session" } },
}

function M.on_request(req, ctx, conf)
  ctx.hash = req.headers[conf.header]
end

return M
