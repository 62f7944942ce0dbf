-- Only bodies that the partner has signed go on: X-Signature is base64 of RSA-SHA256 over the body.
local M = {
  stage = "auth",
  config = { public_key = { "string", required = true, doc = "PEM" } },
}

function M.init(conf) -- a broken key is refused at load
  gw.crypto.verify("RS256", conf.public_key, "", "")
end

function M.on_request(req, ctx, conf)
  local signature = gw.crypto.base64_decode(req.headers["X-Signature"] or "")
  if not signature or not gw.crypto.verify("RS256", conf.public_key, req:body(), signature) then
    return gw.respond(401, "the body is not signed")
  end
end

return M
