-- Lets in applications that sign their requests; docs/auth/hmac.md says what they sign.
--
--   [filter.hmac.apps]
--   billing = "${BILLING_KEY}"                                     # HMAC-SHA256, at least 32 bytes
--   audit = { secret = "${file:audit.key}", hash = "sha512" }      # HMAC-SHA512, at least 64

---@type gw.Filter
local M = {
  stage = "auth",
  order = 20,
  identity = { "X-User-Id" }, -- nobody else sets them: removed from what clients send
  config = {
    apps = { "map", required = true, doc = "name = secret, or { secret, hash }" },
    signed_headers = { "list", of = "string", default = {}, doc = "headers that must be signed too" },
    redis = { "string", doc = "name of a [redis.NAME] that remembers nonces for all gateways" },
    redis_prefix = { "string", default = "nonce:" },
    realm = { "string", default = "api" },
  },
}

---@param conf table
function M.init(conf)
  return gw.auth.hmac(conf) -- wrong settings are refused at load
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
