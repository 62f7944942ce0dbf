-- Shows browsers a page where a program would get the JSON of an error. `page` is a file of the scripts folder in which
-- {{status}}, {{message}} and {{request_id}} are filled in; without one it is a plain page.
local accept = require("accept")

---@type gw.Filter
local M = {
  stage = "log",
  config = { page = { "string", doc = "file with the page, relative to the scripts folder" } },
}

local plain = [[<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{status}} {{message}}</title>
<body style="font-family: sans-serif; margin: 4em"><h1>{{status}}</h1><p>{{message}}</p><small>{{request_id}}</small></body></html>
]]

local escapes = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

function M.init(conf)
  return conf.page and assert(gw.file.read(conf.page)) or plain
end

---@param res gw.Response
---@param ctx gw.Context
---@param conf table
function M.on_response(res, ctx, conf)
  local kind = res.headers["Content-Type"] or ""
  if res.status < 400 or not kind:find("json", 1, true) then
    return
  end
  if not accept.prefers(res.req.headers["Accept"], "text/html", "application/json") then
    return
  end
  local known = {
    status = tostring(res.status),
    message = tostring(res:json_get("message") or "Something went wrong"),
    request_id = ctx.request_id,
  }
  res:set_body((conf.state:gsub("{{([%w_]+)}}", function(name)
    return known[name] and known[name]:gsub('[&<>"]', escapes) or ""
  end)))
  res.headers["Content-Type"] = "text/html; charset=utf-8"
end

return M
