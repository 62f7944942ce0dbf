-- Lets in who brings a valid JSON Web Token, and tells the upstream who that is.
--
--   [filter.jwt]
--   secret = "${JWT_SECRET}"        # at least 32 bytes; or public_key with a PEM block
--   skip = ["/api/login", "/public/**"]

local fits, verify = gw.path.match, gw.jwt.verify -- looked up once: a filter on every route counts its nanoseconds

---@type gw.Filter
local M = {
  stage = "auth",
  order = 20,
  identity = { "X-User-Id", "X-User-Role" }, -- nobody else sets them: removed from what clients send
  config = {
    secret = { "secret", doc = "shared key of HS256, HS384 or HS512" },
    public_key = { "string", doc = "PEM block for RS, PS, ES or EdDSA" },
    algorithm = { "string", doc = "the only one accepted; default: HS256, or what fits the key" },
    issuer = { "list", of = "string", default = {}, doc = "whose tokens are accepted; empty: anybody's" },
    audience = { "list", of = "string", default = {}, doc = "for whom they must be made; empty: anybody" },
    required = { "list", of = "string", default = { "exp", "sub" }, doc = "claims that a token must have" },
    leeway = { "duration", default = "0s", max = "5m", doc = "how far clocks may differ" },
    skip = { "list", of = "string", default = {}, doc = "paths that need no token" },
  },
}

---@param conf table
function M.init(conf)
  gw.jwt.check(conf)
end

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  if fits(conf.skip, req.path) then
    return
  end
  local claims, err = verify(req.bearer, conf) -- a token seen before costs a look-up
  if not claims then
    return gw.respond(401, err, { ["WWW-Authenticate"] = 'Bearer realm="api"' })
  end
  ctx.user = claims.sub
  local headers = req.headers
  headers["X-User-Id"] = claims.sub
  local role = claims.role
  headers["X-User-Role"] = type(role) == "table" and table.concat(role, ",") or role
end

return M
