-- Devices say who they are: "sensor-x200/1.4.2 (...)". The firmware goes upstream as a header, and a model whose requests keep failing
-- rests: each model has a threshold of its own.
local M = {
  stage = "route",
  config = {
    failures = { "map", of = "integer", default = {}, doc = "by model" },
    otherwise = { "integer", default = 10 },
    rest = { "duration", default = "30s" },
  },
}

function M.on_request(req, ctx, conf)
  local device = gw.re.match(req.headers["User-Agent"] or "", "^(?P<model>[a-z0-9-]+)/(?P<firmware>[0-9.]+)")
  if not device then
    return
  end
  if (gw.shared.get("devices", device.model) or 0) >= (conf.failures[device.model] or conf.otherwise) then
    return gw.respond(503, device.model .. " rests", { ["Retry-After"] = conf.rest })
  end
  ctx.model = device.model
  req.headers["X-Firmware"] = device.firmware
end

function M.on_response(res, ctx, conf)
  if ctx.model and res.source == "upstream" and res.status >= 500 then
    gw.shared.incr("devices", ctx.model, 1, conf.rest)
  end
end

return M
