-- Lets in who brings an API key, of which only the digest is kept: docs/auth/keys.md says how to make one.
--
--   [filter.api_key.keys.acme]
--   hash = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
--   tier = "gold"
--   routes = ["orders"]             # the only ones that it is good for; none: all
--
--   [filter.api_key]
--   key_lines = "${file:keys.jsonl}"   # or ${API_KEYS}: one {"user":"acme","hash":"sha256:..."} a line

---@type gw.Filter
local M = {
  stage = "auth",
  order = 20,
  identity = { "X-User-Id", "X-User-Tier" }, -- nobody else sets them: removed from what clients send
  config = {
    keys = { "map", of = "map", default = {}, doc = "user = { hash, tier, rate, routes, expires }" },
    key_lines = { "secret", doc = "more of them, as JSON, one a line" },
    redis = { "string", doc = "name of a [redis.NAME] that has more of them" },
    redis_prefix = { "string", default = "api_key:", doc = "what stands before a key's digest there" },
    keep = { "duration", default = "1m", doc = "how long its answers are kept" },
    header = { "string", doc = "header with the key; default X-Api-Key" },
    query = { "string", doc = "or a parameter of the query" },
    cookie = { "string", doc = "or a cookie" },
    realm = { "string", default = "api" },
  },
}

---@param conf table
function M.init(conf)
  return gw.auth.api_key(conf) -- wrong settings are refused at load
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
  ctx.tier, ctx.rate = who.claims.tier, who.claims.rate -- for filters behind this one
  req.headers["X-User-Id"] = who.user
  req.headers["X-User-Tier"] = who.claims.tier
  if conf.header or not (conf.query or conf.cookie) then
    req.headers[conf.header or "X-Api-Key"] = nil -- the upstream has no use for it
  end
end

return M
