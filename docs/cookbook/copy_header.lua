-- A request header goes upstream under a second name too.
local M = {
  stage = "transform",
  config = {
    from = { "string", required = true },
    to = { "string", required = true },
  },
}

function M.on_request(req, ctx, conf)
  req.headers[conf.to] = req.headers[conf.from]
end

return M
