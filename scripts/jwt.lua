-- Lets in who brings a valid JSON Web Token, and tells the upstream who that is.
--
--   [filter.jwt]
--   secret = "${JWT_SECRET}"        # at least 32 bytes; or public_key, jwks, jwks_url, discovery

local fits, tell = gw.path.match, gw.auth.tell -- looked up once: a filter on every route counts its nanoseconds

---@type gw.Filter
local M = {
  stage = "auth",
  order = 20,
  identity = { "X-User-Id", "X-User-Role" }, -- nobody else sets them: removed from what clients send
  config = {
    secret = { "secret", doc = "shared key of HS256, HS384 or HS512" },
    public_key = { "string", doc = "PEM block for RS, PS, ES or EdDSA" },
    jwks = { "string", doc = "a key set, such as ${file:jwks.json}" },
    jwks_url = { "string", doc = "where the key set is fetched" },
    discovery = { "boolean", doc = "asks the issuer, an OpenID provider, for its key set" },
    refresh = { "duration", default = "15m", min = "1s", doc = "how old a key set may become" },
    cooldown = { "duration", default = "30s", min = "1s", doc = "between two fetches that unknown keys cause" },
    timeout = { "duration", default = "5s", min = "1ms", max = "1m", doc = "of one fetch" },
    ca = { "string", doc = "PEM certificates that are believed when keys are fetched" },
    algorithm = { "string", doc = "the only one accepted; default: HS256, or what fits the key" },
    issuer = { "list", of = "string", default = {}, doc = "whose tokens are accepted; empty: anybody's" },
    audience = { "list", of = "string", default = {}, doc = "for whom they must be made; empty: anybody" },
    required = { "list", of = "string", default = { "exp", "sub" }, doc = "claims that a token must have" },
    claims = { "map", default = {}, doc = 'conditions, such as role = "admin"; who does not fulfil them gets 403' },
    issuers = { "list", of = "map", default = {}, doc = "several issuers, each with settings like these of its own" },
    revoked = { "string", doc = "store of gw.shared that has the ids (jti) of tokens taken back" },
    revoked_ids = { "list", of = "string", default = {}, doc = "ids of tokens taken back" },
    user = { "string", default = "sub", doc = "claim that names the caller" },
    headers = { "map", of = "string", identity = true, default = { ["X-User-Role"] = "role" }, doc = "headers from claims" },
    leeway = { "duration", default = "0s", max = "5m", doc = "how far clocks may differ" },
    realm = { "string", default = "api" },
    skip = { "list", of = "string", default = {}, doc = "paths that need no token" },
  },
}

function M.init(conf)
  return gw.auth.jwt(conf) -- kept over reloads, with the tokens that it has verified
end

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  if fits(conf.skip, req.path) then
    return
  end
  local who, refusal = conf.state:verify(req) -- a token seen before costs a look-up
  if not who then
    return gw.auth.refuse(refusal)
  end
  ctx.user = who.user
  req.headers["X-User-Id"] = who.user
  tell(req, who, conf.headers)
end

return M
