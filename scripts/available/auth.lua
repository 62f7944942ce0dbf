-- Joins proofs of several kinds: any of them, all of them, or none at all; each route may say its own.
--
--   [filter.auth.verifiers.tokens]
--   kind = "jwt"                    # and the settings of gw.auth.jwt; so for the other kinds, see docs/lua/auth.md
--   jwks_url = "https://id.example.com/jwks.json"
--   [filter.auth.verifiers.office]
--   kind = "network"
--   networks = { office = ["192.0.2.0/24"] }
--
--   [route.filter.auth]
--   require = "all"                 # any (default), all, optional, none
--   of = ["tokens", "office"]       # default: all of them, by name

---@type gw.Filter
local M = {
  stage = "auth",
  order = 20,
  identity = { "X-User-Id" }, -- nobody else sets them: removed from what clients send
  config = {
    verifiers = { "map", of = "map", default = {} },
    require = { "enum", values = { "any", "all", "optional", "none" }, default = "any" },
    of = { "list", of = "string", default = {}, doc = "which count here, in this order" },
    anonymous = { "string", doc = "user of who needs no proof" },
    headers = { "map", of = "string", identity = true, default = {}, doc = "headers from claims" },
  },
}

---@param conf table
function M.init(conf)
  return gw.auth.policy(conf) -- wrong settings are refused at load
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
  gw.auth.tell(req, who, conf.headers)
end

return M
