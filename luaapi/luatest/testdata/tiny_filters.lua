-- Parameters from the configuration: a header from the query, a copied header, a path with a random part.
local M = {
  stage = "transform",
  config = {
    query_to_header = { "map", of = "string", default = {} },
    copy = { "map", of = "string", default = {} },
    random_path = { "string", doc = "prefix" },
  },
}

function M.on_request(req, ctx, conf)
  for name, header in pairs(conf.query_to_header) do
    if req.headers[header] == nil then
      req.headers[header] = req.query[name]
    end
  end
  for from, to in pairs(conf.copy) do
    req.headers[to] = req.headers[from]
  end
  if conf.random_path then
    req.path = conf.random_path .. gw.crypto.hex_encode(gw.crypto.random(4))
  end
end

return M
