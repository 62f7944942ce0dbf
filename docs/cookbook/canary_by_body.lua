-- Requests whose JSON says env = "canary", or whose user id fits a pattern, go to the canary. A body that is longer than the route's
-- body_buffer (1 MiB) never does: it streams on unread.
local M = {
  stage = "route",
  config = {
    upstream = { "string", default = "canary" },
    users = { "string", default = "^test-", doc = "regular expression of user ids" },
  },
}

function M.init(conf)
  assert(gw.upstream.exists(conf.upstream), "there is no upstream " .. conf.upstream)
end

function M.on_request(req, ctx, conf)
  if not req:body_fits() then
    return
  end
  local user = req:json_get("user.id")
  if req:json_get("env") == "canary" or type(user) == "string" and gw.re.test(user, conf.users) then
    ctx.upstream = conf.upstream
  end
end

return M
