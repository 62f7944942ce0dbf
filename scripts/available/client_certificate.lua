-- Lets in who shows a certificate in the TLS handshake; the listener has verified it (client = "optional" or "required").
--
--   [filter.client_certificate]
--   allow = { "CN=robot,O=Example" = "robot" }   # nobody else; without it everybody whose certificate is good

---@type gw.Filter
local M = {
  stage = "auth",
  order = 20,
  identity = { "X-User-Id" }, -- nobody else sets them: removed from what clients send
  config = {
    user = { "enum", values = { "cn", "subject", "san", "fingerprint" }, default = "cn", doc = "what names the caller" },
    allow = { "map", of = "string", default = {}, doc = "subject, alternative name or fingerprint = caller" },
    headers = {
      "map",
      of = "string",
      identity = true,
      default = { ["X-Client-Subject"] = "subject" },
      doc = "headers from cn, o, ou, subject, sans, fingerprint",
    },
  },
}

---@param conf table
function M.init(conf)
  return gw.auth.certificate(conf) -- wrong settings are refused at load
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
