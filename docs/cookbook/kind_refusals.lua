-- Who comes too often is told in a form that fits: JSON for apps, a page with a countdown for browsers; who calls from inside passes.
local page = [[<!doctype html><title>Please wait</title>
<p>Please wait <b id="s">%d</b> seconds.</p>
<script>setInterval(function () { if (--s.textContent < 1) location.reload() }, 1000)</script>
]]

local M = {
  stage = "limit",
  config = {
    rate = { "rate", required = true },
    burst = { "integer" },
    key = { "string", default = "ip" },
    internal = { "list", of = "string", default = {}, doc = "networks of our own" },
  },
}

function M.on_request(req, ctx, conf)
  local ok, info = gw.limit.take(conf)
  if ok then
    return
  end
  if gw.ip.match(conf.internal, req.client_ip) then
    req.headers["X-RateLimit-Remaining"] = 0
    return
  end
  local wait = info.retry_after
  if (req.headers["Accept"] or ""):find("text/html", 1, true) then
    return gw.respond(429, page:format(wait), { ["Content-Type"] = "text/html; charset=utf-8", ["Retry-After"] = wait })
  end
  return gw.respond(429, { code = 429, message = "too many requests", retry_after = wait }, { ["Retry-After"] = wait })
end

return M
