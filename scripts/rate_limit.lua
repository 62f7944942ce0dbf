-- Limits how often a caller may come: a bucket of `burst` requests for each key, filled at `rate`.
--
--   [route.filter.rate_limit]
--   rate = "5/s"
--   burst = 10
--
-- Each route counts for itself, unless `limiter` names a [limiter.NAME] that several share: there is more to set there, such as a quota by
-- the calendar, so many at once, tiers, and a Redis in which all gateways count together.

local take, headers = gw.limit.take, gw.limit.headers

---@type gw.Filter
local M = {
  stage = "limit",
  config = {
    rate = { "rate", doc = "such as 5/s or 100/m" },
    burst = { "integer", min = 1, doc = "requests that pass at once; default: the count of the rate" },
    limiter = { "string", doc = "name of a limiter to share instead" },
    key = { "string", default = "ip", doc = "whom to count: ip, user, route, global or header:NAME" },
    headers = {
      "enum",
      values = { "ratelimit", "x", "draft", "none" },
      default = "ratelimit",
      doc = "what a refusal tells: RateLimit-Limit and the like, X-RateLimit-Limit and the like, RateLimit as in the draft, or only when",
    },
  },
}

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  local ok, info = take(conf) -- by conf.key, from the bucket of this route
  if ok then
    return
  end
  return gw.respond(429, "too many requests", headers(info, conf.headers))
end

return M
