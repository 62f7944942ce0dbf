-- Tells the upstream who the client's certificate was made for. Being listed as identity, these headers reach it from here alone.
local names = { "X-Client-CN", "X-Client-O", "X-Client-URIs" }

local M = { stage = "auth", identity = names }

function M.on_request(req)
  local tls = req.tls
  if tls and tls.subject then
    req.headers["X-Client-CN"] = tls.common_name
    req.headers["X-Client-O"] = tls.organizations[1]
    req.headers["X-Client-URIs"] = #tls.uris > 0 and table.concat(tls.uris, ", ") or nil
  end
end

return M
