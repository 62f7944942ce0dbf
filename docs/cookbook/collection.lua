-- A list of things becomes what the client wants to know of it: how many there are, and their paths.
local M = { stage = "transform" }

function M.on_response(res)
  local doc = res.status == 200 and res:json()
  if type(doc) ~= "table" or type(doc.collection) ~= "table" then
    return
  end
  local paths = gw.json.array({})
  for _, item in ipairs(doc.collection) do
    paths[#paths + 1] = item.path
  end
  doc.total = #paths
  doc.paths, doc.collection = paths, nil
  res:set_body(gw.json.encode(doc))
end

return M
