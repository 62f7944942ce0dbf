-- Limits how many requests of a caller are under way at once. Each gives its slot back when it ends, whatever way it ends.
--
--   [limiter.exports]
--   concurrency = 4
--
--   [route.filter.concurrency_limit]
--   limiter = "exports"

---@type gw.Filter
local M = {
  stage = "limit",
  config = {
    limiter = { "string", required = true, doc = "name of a limiter of concurrency" },
    key = { "string", default = "ip", doc = "whom to count: ip, user, route, global or header:NAME" },
  },
}

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  local ok, info = gw.limit.acquire(conf)
  if not ok then
    return gw.respond(429, "too many requests at once", gw.limit.headers(info, "none"))
  end
end

return M
