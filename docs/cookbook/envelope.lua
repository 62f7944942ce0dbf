-- Every JSON answer says whether it worked; errors of the upstream get the name that clients know. The status stays.
local M = { stage = "transform" }

function M.on_response(res)
  local doc = res:json()
  if type(doc) ~= "table" then
    return -- no JSON, or too large to be changed
  end
  doc.success = res.status < 400
  doc.detailMessage, doc.detail_message = doc.detail_message, nil
  res:set_body(gw.json.encode(doc))
end

return M
