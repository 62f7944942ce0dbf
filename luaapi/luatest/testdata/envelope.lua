-- One shape for all answers: { success, ... }; a collection gains its total.
local M = { stage = "transform" }

function M.on_response(res)
  local doc = res:json()
  if type(doc) ~= "table" then
    return
  end
  if res.status >= 400 then
    doc = { success = false, detailMessage = doc.detail_message }
  elseif doc.collection then
    local paths = gw.json.array {}
    for i, item in ipairs(doc.collection) do
      paths[i] = item.path
    end
    doc = { success = true, total = #paths, paths = paths }
  else
    doc.success = true
  end
  res:set_body(gw.json.encode(doc))
end

return M
