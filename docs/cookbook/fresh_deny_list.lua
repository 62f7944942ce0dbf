-- Keeps out the addresses of a list that a service has. A timer fetches it; what was listed stays so for three rounds, in case the
-- service is away.
local M = {
  stage = "auth",
  order = 10,
  config = {
    service = { "string", required = true, doc = "upstream that has the list" },
    path = { "string", default = "/blocked", doc = "addresses, in any text" },
    every = { "duration", default = "30s", min = "1s" },
  },
}

function M.init(conf)
  gw.time.every(conf.every, function()
    local answer, err = gw.http.get { upstream = conf.service, path = conf.path, timeout = 5 }
    if not answer or answer.status ~= 200 then
      error("deny list not fetched: " .. (err or answer.status))
    end
    for word in answer.body:gmatch("[%x.:]+") do
      if gw.ip.valid(word) then
        gw.shared.set("denied", word, true, conf.every * 3)
      end
    end
  end)
end

function M.on_request(req)
  if gw.shared.get("denied", req.client_ip) then
    return gw.respond(403)
  end
end

return M
