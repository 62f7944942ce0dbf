-- Clients of version 1 reach an upstream that only knows version 2: path and names are changed on the way there and back.
local names = { user_name = "login", mail = "email" } -- v1 = v2
local back = {}
for v1, v2 in pairs(names) do
  back[v2] = v1
end

local function renamed(doc, by)
  local out = {}
  for key, value in pairs(doc) do
    out[by[key] or key] = value
  end
  return gw.json.encode(out)
end

local M = { stage = "transform" }

function M.on_request(req, ctx)
  local rest = req.path:match("^/v1(/.*)")
  if rest then
    ctx.v1, req.path = true, "/v2" .. rest
    local doc = req:json()
    if type(doc) == "table" then
      req:set_body(renamed(doc, names))
    end
  end
end

function M.on_response(res, ctx)
  local doc = ctx.v1 and res:json()
  if type(doc) == "table" then
    res:set_body(renamed(doc, back))
  end
end

return M
