-- Asks another service about each request: 2xx lets it in, from 300 to 499 the answer is the client's, all else is 503.
--
--   [filter.forward_auth]
--   url = "http://auth.internal:9000/check"
--   take = ["X-Auth-Role"]            # headers of a good answer, for the upstream

---@type gw.Filter
local M = {
  stage = "auth",
  order = 20,
  identity = { "X-User-Id" }, -- nobody else sets them: removed from what clients send
  config = {
    url = { "string", required = true },
    send = { "list", of = "string", default = { "Authorization", "Cookie" }, doc = "headers that go there" },
    user = { "string", default = "X-Auth-User", doc = "header of a good answer that names the caller" },
    optional = { "boolean", doc = "lets in without that header too" },
    take = { "list", of = "string", identity = true, default = {}, doc = "headers of a good answer that go to the upstream" },
    keep = { "duration", default = "0s", doc = "how long a good answer is remembered" },
    timeout = { "duration", default = "5s", min = "1ms" },
    ca = { "string", doc = "PEM certificates that are believed" },
  },
}

---@param conf table
function M.init(conf)
  return gw.auth.forward(conf) -- wrong settings are refused at load
end

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  local who, refusal = conf.state:verify(req)
  if not who then
    return gw.auth.refuse(refusal)
  end
  ctx.user = who.user
  req.headers["X-User-Id"] = who.user
  for _, name in ipairs(conf.take) do
    req.headers[name] = who.claims[name:lower()]
  end
end

return M
