-- Sends a copy of a part of the requests to another upstream, to see how a new version bears them. Nobody waits for the copy.
local M = {
  stage = "route",
  config = {
    upstream = { "string", required = true, doc = "who gets the copies" },
    fraction = { "number", default = 0.01, min = 0, max = 1 },
    methods = { "list", default = { "GET", "HEAD" }, doc = "copies of others could do twice what is to be done once" },
  },
}

function M.on_request(req, ctx, conf)
  for _, method in ipairs(conf.methods) do
    if req.method == method then
      gw.mirror(conf.upstream, { fraction = conf.fraction, headers = { ["X-Shadow"] = "1" } })
      return
    end
  end
end

return M
