-- Asks Redis for each request whether its address is on a list. The `timeout` of the [redis.NAME] says for how long; without an answer the
-- request passes.
local M = {
  stage = "auth",
  order = 10,
  config = {
    redis = { "string", default = "main", doc = "name of a [redis.NAME]" },
    set = { "string", default = "denied", doc = "key of a set of addresses" },
  },
}

function M.on_request(req, ctx, conf)
  local listed, err = gw.redis.call(conf.redis, "SISMEMBER", conf.set, req.client_ip)
  if err then
    gw.log.warn("deny list not asked", { error = err })
  elseif listed == 1 then
    return gw.respond(403, "not from here")
  end
end

return M
