-- Sends clients elsewhere: to another scheme, host, port or path. What is not named stays as the client asked for it, the query too.
--
--   [route.filter.redirect]
--   scheme = "https"
--   status = 308

---@type gw.Filter
local M = {
  stage = "route",
  config = {
    status = { "integer", default = 302, doc = "301, 302, 303, 307 or 308" },
    scheme = { "enum", values = { "http", "https" } },
    host = { "string", pattern = [[^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])$]], doc = "a name or an address, without a port" },
    port = { "integer", min = 1, max = 65535, doc = "without one a client's own stays, unless scheme or host change" },
    path = { "string", pattern = "^/[!-~]*$", doc = "the whole path, and the query too where it has one" },
    prefix = { "string", pattern = "^/[!-~]*[^/]$", doc = "what the path begins with, in whole segments; others are let through" },
    to = { "string", pattern = "^/[!-~]*$", doc = "what stands for the prefix" },
  },
}

local standard = { http = 80, https = 443 }
local statuses = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }

function M.init(conf)
  assert(statuses[conf.status], "status: write 301, 302, 303, 307 or 308")
  assert((conf.prefix == nil) == (conf.to == nil), "prefix and to go together")
  assert(conf.path == nil or conf.prefix == nil, "path names all of it: take prefix and to away")
  assert(conf.scheme or conf.host or conf.port or conf.path or conf.prefix, "leads nowhere else: write scheme, host, port, path, or prefix and to")
end

--- The path with its query, nil when the prefix is another.
local function target(req, conf)
  local path = req.raw_path
  if conf.path then
    path = conf.path
    if path:find("?", 1, true) then
      return path
    end
  elseif conf.prefix then
    local n = #conf.prefix
    local rest = path:sub(n + 1)
    if path:sub(1, n) ~= conf.prefix or rest ~= "" and rest:sub(1, 1) ~= "/" then
      return nil
    end
    path = (conf.to:gsub("/$", "")) .. rest
    path = path == "" and "/" or path
  end
  return req.raw_query ~= "" and path .. "?" .. req.raw_query or path
end

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  local path = target(req, conf)
  if not path then
    return
  end
  local scheme = conf.scheme or req.scheme
  local host, port = req.host:match("^(.*):(%d+)$")
  host = conf.host or host or req.host
  if conf.port then
    port = conf.port
  elseif conf.host or scheme ~= req.scheme then
    port = nil
  end
  if port and tonumber(port) ~= standard[scheme] then
    host = host .. ":" .. port
  end
  return gw.redirect(scheme .. "://" .. host .. path, conf.status)
end

return M
