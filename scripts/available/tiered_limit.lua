-- Limits each user by a tier that an earlier filter has left in ctx.tier, or by the limiter's own rate; requests that say so cost more.
--
--   [limiter.api]
--   rate = "10/s"
--   [limiter.api.tiers]
--   gold = { rate = "100/s", burst = 200 }
--
--   [filter.tiered_limit]
--   limiter = "api"
--   costs = { "/search" = 5 }

---@type gw.Filter
local M = {
  stage = "transform",
  config = {
    limiter = { "string", required = true, doc = "name of a limiter with tiers" },
    costs = { "map", of = "integer", default = {}, doc = "path to cost; default: 1" },
    header = { "string", doc = "header in which a trusted proxy tells the tier, where no filter does" },
  },
}

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  local tier = ctx.tier or conf.header and req.headers[conf.header]
  local ok, info = gw.limit.take(conf.limiter, gw.limit.key("user"), conf.costs[req.path] or 1, tier)
  if not ok then
    return gw.respond(429, "too many requests", gw.limit.headers(info))
  end
end

return M
