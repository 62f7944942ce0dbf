-- Refuses those who come too often, slowly: each refusal takes a while, which costs the gateway a connection and no machine.
local M = {
  stage = "limit",
  config = {
    rate = { "rate", default = "10/s" },
    burst = "integer",
    key = { "string", default = "ip" },
    limiter = "string",
    wait = { "duration", default = "2s" },
  },
}

function M.on_request(req, ctx, conf)
  local ok, info = gw.limit.take(conf)
  if ok then
    return
  end
  gw.delay(conf.wait) -- where too many wait already, the refusal goes out at once
  return gw.respond(429, "too many requests", { ["Retry-After"] = info.retry_after })
end

return M
