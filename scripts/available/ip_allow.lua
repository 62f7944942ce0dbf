-- Lets in whose address lies in a listed network, and nobody whose address is denied.
--
--   [route.filter.ip_allow]
--   allow = ["10.0.0.0/8", "2001:db8::/32"]

---@type gw.Filter
local M = {
  stage = "limit",
  order = 10, -- before buckets: who may not come is not counted
  config = {
    allow = { "list", of = "string", default = {}, doc = "networks; empty: everybody who is not denied" },
    deny = { "list", of = "string", default = {}, doc = "networks; they go before allow" },
    status = { "integer", default = 403, min = 400, max = 499 },
  },
}

function M.init(conf) -- what is no network is refused at load
  gw.ip.match(conf.allow, "127.0.0.1")
  gw.ip.match(conf.deny, "127.0.0.1")
end

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  local address = req.client_ip
  if gw.ip.match(conf.deny, address) or #conf.allow > 0 and not gw.ip.match(conf.allow, address) then
    return gw.respond(conf.status)
  end
end

return M
