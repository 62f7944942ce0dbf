-- Every parameter k=v becomes the header X-Query-Param-k: v; upstream the URL has no query.
local M = { stage = "transform" }

function M.on_request(req)
  for name, value in pairs(req.query) do
    local header = "X-Query-Param-" .. name
    if gw.re.test(header, "^[A-Za-z0-9-]+$") and not value:find("%c") then -- what may stand in a header
      req.headers:add(header, value)
    end
  end
  req.raw_query = nil
end

return M
