-- The third request of a user within ten seconds gets a static answer; from the fifth on they go to another upstream.
local M = {
  stage = "transform",
  config = { degraded = { "integer", default = 3 }, risky = { "integer", default = 5 }, upstream = { "string", required = true } },
}

function M.on_request(req, ctx, conf)
  local user = req.headers["X-User"]
  local n = gw.shared.incr("flash", user or req.client_ip, 1, 10)
  if n == conf.degraded then
    return gw.respond(200, { degraded = true })
  elseif n >= conf.risky then
    req.headers["X-Risk"] = n
    ctx.upstream = conf.upstream
  end
end

return M
