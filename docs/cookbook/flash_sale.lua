-- Within ten seconds, the third and fourth request of one user get a plain answer at once; from the fifth on they are marked and
-- go to the upstream that judges risk. gw.shared counts exactly, however many machines and requests count at once.
local M = {
  stage = "route",
  config = {
    window = { "duration", default = "10s" },
    risk = { "string", required = true, doc = "upstream for who comes too often" },
  },
}

function M.on_request(req, ctx, conf)
  local n = gw.shared.incr("flash_sale", gw.limit.key("user"), 1, conf.window)
  if n >= 5 then
    req.headers["X-Risk"] = "repeated"
    ctx.upstream = conf.risk
  elseif n >= 3 then
    return gw.respond(200, { items = gw.json.array({}), note = "try again in a few seconds" })
  end
end

return M
