-- Asks an authorisation server (RFC 7662) whether a token is good, once for each token's life. Refusals are remembered for a second.
local M = {
  stage = "auth",
  config = {
    server = { "string", required = true, doc = "upstream of the authorisation server" },
    path = { "string", default = "/introspect" },
    keep = { "duration", default = "1m", doc = "for tokens that do not say when they expire" },
  },
}

local function introspect(token, conf)
  local answer, err = gw.http.post { upstream = conf.server, path = conf.path, form = { token = token }, timeout = 2 }
  if not answer then
    return nil, err
  elseif answer.status ~= 200 or answer:json_get("active") == false then
    return nil, "token refused"
  end
  local expires = answer:json_get("exp")
  return answer:json_get("sub") or "somebody", nil, expires and expires - gw.time.now() or conf.keep
end

function M.on_request(req, ctx, conf)
  local token = req.bearer
  if not token then
    return gw.respond(401, "missing bearer token", { ["WWW-Authenticate"] = "Bearer" })
  end
  local user, err = gw.cache.get_or(token, conf.keep, function() return introspect(token, conf) end)
  if not user then
    return gw.respond(401, err, { ["WWW-Authenticate"] = 'Bearer error="invalid_token"' })
  end
  ctx.user = user
end

return M
