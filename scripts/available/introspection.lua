-- Lets in who brings a token that its issuer calls active (OAuth 2.0 Token Introspection, RFC 7662).
--
--   [filter.introspection]
--   url = "https://id.example.com/introspect"
--   client_id = "gateway"
--   client_secret = "${INTROSPECTION_SECRET}"
--   claims = { scope = { contains = "orders:read" } }

---@type gw.Filter
local M = {
  stage = "auth",
  order = 20,
  identity = { "X-User-Id" }, -- nobody else sets them: removed from what clients send
  config = {
    url = { "string", required = true },
    client_id = { "string" },
    client_secret = { "secret" },
    post = { "boolean", doc = "sends both in the form, not in a Basic header" },
    issuer = { "list", of = "string", default = {} },
    audience = { "list", of = "string", default = {} },
    claims = { "map", default = {}, doc = "conditions on the answer; who does not fulfil them gets 403" },
    user = { "string", doc = "member that names the caller; default: sub, username or client_id" },
    keep = { "duration", default = "1m", doc = "how long an answer is remembered, never past exp" },
    timeout = { "duration", default = "5s", min = "1ms" },
    ca = { "string", doc = "PEM certificates that are believed" },
    realm = { "string", default = "api" },
  },
}

---@param conf table
function M.init(conf)
  return gw.auth.introspection(conf) -- wrong settings are refused at load
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
end

return M
