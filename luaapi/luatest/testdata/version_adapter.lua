-- Old clients speak /v1 with other names of fields; the upstream knows /v2 only.
local M = { stage = "transform" }

local function rename(doc, names)
  for from, to in pairs(names) do
    doc[to], doc[from] = doc[from], nil
  end
  return doc
end

function M.on_request(req, ctx)
  local rest = req.path:match("^/v1(/.*)$")
  if not rest then
    return
  end
  ctx.old = true
  req.path = "/v2" .. rest
  local doc = req:json()
  if doc then
    req:set_body(gw.json.encode(rename(doc, { name = "full_name" })))
  end
end

function M.on_response(res, ctx)
  local doc = ctx.old and res:json()
  if doc then
    res:set_body(gw.json.encode(rename(doc, { full_name = "name" })))
  end
end

return M
