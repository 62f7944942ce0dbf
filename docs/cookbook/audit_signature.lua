-- Signs what goes upstream: an audit id, and an HMAC over it, the method, the path and the body's digest. The key comes from a key
-- service; one request fetches it for all, and the last one stands in while the service is away.
local M = {
  stage = "transform",
  order = 90,
  identity = { "X-Audit-Id", "X-Audit-Signature" },
  config = {
    keys = { "string", required = true, doc = "upstream of the key service" },
    renew = { "duration", default = "5m" },
  },
}

function M.on_request(req, ctx, conf)
  local key, err = gw.cache.get_or("key", conf.renew, function()
    local answer, why = gw.http.get { upstream = conf.keys, path = "/audit-key", timeout = 1 }
    if not answer then
      return nil, why
    elseif answer.status ~= 200 then
      return nil, "key service: status " .. answer.status
    end
    return answer.body
  end, { stale = 86400 })
  if not key then
    gw.log.error("no audit key", { error = err })
    return gw.respond(503, "cannot be signed now")
  end
  local id = gw.uuid.v7()
  local digest = gw.crypto.hex_encode(gw.crypto.sha256(req:body()))
  local mac = gw.crypto.hmac("sha256", key, table.concat({ id, req.method, req.path, digest }, "\n"))
  req.headers["X-Audit-Id"] = id
  req.headers["X-Audit-Signature"] = gw.crypto.base64_encode(mac)
end

return M
