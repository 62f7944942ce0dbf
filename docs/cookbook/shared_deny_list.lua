-- Keeps out the addresses of a set in Redis, which a timer reads for all: a request asks nobody. What was listed stays so for a while,
-- in case Redis is away.
local M = {
  stage = "auth",
  order = 10,
  config = {
    redis = { "string", default = "main", doc = "name of a [redis.NAME]" },
    set = { "string", default = "denied", doc = "key of a set of addresses" },
    every = { "duration", default = "10s", min = "1s" },
    keep = { "duration", default = "1m" },
  },
}

function M.init(conf)
  gw.time.every(conf.every, function()
    local addresses, err = gw.redis.call(conf.redis, "SMEMBERS", conf.set)
    if not addresses then
      error("deny list not read: " .. err)
    end
    for _, address in ipairs(addresses) do
      gw.shared.set("denied", address, true, conf.keep)
    end
  end)
end

function M.on_request(req)
  if gw.shared.get("denied", req.client_ip) then
    return gw.respond(403, "not from here")
  end
end

return M
