-- Every query parameter becomes a header of the upstream's request, and the query goes.
local M = { stage = "transform" }

function M.on_request(req)
  for name, value in pairs(req.query) do
    req.headers["X-Query-Param-" .. name:gsub("[^%w-]", "-")] = value
  end
  req.raw_query = nil
end

return M
