-- Keeps out who is on a list of networks, however long: a file of the scripts folder, one network a line.
local M = {
  stage = "limit",
  order = 1,
  config = { file = { "string", default = "denied.txt" } },
}

function M.init(conf)
  return gw.ip.set(assert(gw.file.read(conf.file)))
end

function M.on_request(req, ctx, conf)
  if conf.state:has(req.client_ip) then
    return gw.respond(403, "not from here")
  end
end

return M
