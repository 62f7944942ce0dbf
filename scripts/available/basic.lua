-- Lets in who knows a password of a list that htpasswd makes.
--
--   [filter.basic]
--   users = "${file:users.htpasswd}"   # htpasswd -B: bcrypt; lines of argon2 hashes too

---@type gw.Filter
local M = {
  stage = "auth",
  order = 20,
  identity = { "X-User-Id" }, -- nobody else sets them: removed from what clients send
  config = {
    users = { "secret", required = true, doc = "lines of user:hash" },
    keep = { "duration", default = "1m", doc = "how long a right password is not hashed again" },
    realm = { "string", default = "api" },
  },
}

---@param conf table
function M.init(conf)
  return gw.auth.basic(conf) -- wrong settings are refused at load
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
