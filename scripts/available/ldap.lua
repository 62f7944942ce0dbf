-- Lets in whose password a directory knows.
--
--   [filter.ldap]
--   url = "ldaps://ldap.example.com"
--   base = "ou=people,dc=example,dc=com"
--   filter = "(uid=%s)"
--   attributes = ["memberOf"]
--   claims = { memberof = { contains = "cn=ops,ou=groups,dc=example,dc=com" } }

---@type gw.Filter
local M = {
  stage = "auth",
  order = 20,
  identity = { "X-User-Id" }, -- nobody else sets them: removed from what clients send
  config = {
    url = { "string", required = true, doc = "ldaps://host or ldap://host" },
    start_tls = { "boolean" },
    ca = { "string", doc = "PEM certificates that are believed" },
    user_dn = { "string", doc = "name to bind with; %s is the user" },
    bind_dn = { "string", doc = "or: the gateway's own name, to seek with" },
    bind_password = { "secret" },
    base = { "string", doc = "where to seek" },
    filter = { "string", doc = "what to seek; %s is the user" },
    attributes = { "list", of = "string", default = {}, doc = "what becomes claims" },
    claims = { "map", default = {}, doc = "conditions on them; who does not fulfil them gets 403" },
    keep = { "duration", default = "1m", doc = "how long a right password is not asked about again" },
    timeout = { "duration", default = "5s", min = "1ms" },
    realm = { "string", default = "api" },
  },
}

---@param conf table
function M.init(conf)
  return gw.auth.ldap(conf) -- wrong settings are refused at load
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
  req.headers.Authorization = nil -- passwords end here
end

return M
