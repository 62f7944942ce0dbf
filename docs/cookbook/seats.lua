-- Keeps each client on one server. A server has so many seats, a seat is kept for so long, and who finds none is told to come back.
-- Of all who try at once gw.shared.add gives a seat to one.
local M = {
  stage = "route",
  config = {
    servers = { "list", required = true, doc = "names of upstreams, filled in this order" },
    seats = { "integer", default = 100, min = 1, doc = "clients of one server" },
    keep = { "duration", default = "10m" },
  },
}

---@return string? server
local function sit_down(client, conf)
  for _, server in ipairs(conf.servers) do
    for seat = 1, conf.seats do
      if gw.shared.add("seats", server .. "/" .. seat, client, conf.keep + 1) then -- whoever sat here has left before
        if gw.shared.add("seat of", client, server, conf.keep) then
          return server
        end
        gw.shared.delete("seats", server .. "/" .. seat) -- another request of this client was faster
        return gw.shared.get("seat of", client)
      end
    end
  end
end

function M.on_request(req, ctx, conf)
  local server = gw.shared.get("seat of", req.client_ip) or sit_down(req.client_ip, conf)
  if not server then
    return gw.respond(503, "all seats are taken", { ["Retry-After"] = 60 })
  end
  ctx.upstream = server
end

return M
