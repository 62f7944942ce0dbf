-- An ordinary bucket, and a larger one for days of sale. The configuration says which day it is; a reload, or --watch, makes it so within a
-- second. Both buckets keep what has been taken from them.
local M = {
  stage = "limit",
  config = {
    sale = { "boolean", default = false },
  },
}

function M.on_request(req, ctx, conf)
  local ok, info = gw.limit.take(conf.sale and "sale" or "daily", gw.limit.key("user"))
  if not ok then
    return gw.respond(429, "that was enough for today", { ["Retry-After"] = info.retry_after })
  end
end

return M
