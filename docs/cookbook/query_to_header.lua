-- The value of a query parameter goes upstream as a header, unless the client has sent that header already.
local M = {
  stage = "transform",
  config = {
    query = { "string", required = true, doc = "name of the parameter" },
    header = { "string", required = true },
  },
}

function M.on_request(req, ctx, conf)
  local value = req.query[conf.query]
  if value and not req.headers[conf.header] then
    req.headers[conf.header] = value
  end
end

return M
