-- Sets parameters of the query; those that are not named stay as they came, byte for byte.
local M = {
  stage = "transform",
  config = { parameters = { "map", of = "string", required = true } },
}

function M.on_request(req, ctx, conf)
  for name, value in pairs(conf.parameters) do
    req.query[name] = value
  end
end

return M
