-- Tells every client what is left of its limit, on every answer, and takes nothing itself: it stands beside rate_limit.lua.
--
--   [filter.rate_limit_status]
--   limiter = "partners"
--   style = "draft"

---@type gw.Filter
local M = {
  stage = "limit",
  order = 40,
  config = {
    limiter = { "string", required = true, doc = "name of the limiter" },
    key = { "string", default = "ip", doc = "as for the filter that takes" },
    style = { "enum", values = { "ratelimit", "x", "draft" }, default = "ratelimit", doc = "as gw.limit.headers has them" },
  },
}

---@param res gw.Response
---@param ctx gw.Context
---@param conf table
function M.on_response(res, ctx, conf)
  if res.status == 429 then
    return -- the refusal tells
  end
  local _, info = gw.limit.peek(conf)
  for name, value in pairs(gw.limit.headers(info, conf.style)) do
    res.headers[name] = value
  end
end

return M
