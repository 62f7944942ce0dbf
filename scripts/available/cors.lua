-- Lets pages of other origins call the API (Fetch standard, CORS): answers preflights, and marks every answer, refusals
-- included.
--
--   [filter.cors]
--   origins = ["https://app.example.com"]     # or ["*"]

---@type gw.Filter
local M = {
  stage = "log", -- before limits and auth: a preflight carries no token
  config = {
    origins = { "list", of = "string", required = true, doc = "allowed origins; * is any" },
    methods = { "list", of = "string", default = { "GET", "POST", "PUT", "PATCH", "DELETE" } },
    headers = { "list", of = "string", default = { "Authorization", "Content-Type" } },
    expose = { "list", of = "string", default = {}, doc = "answer headers that pages may read" },
    credentials = { "boolean", default = false, doc = "whether cookies may be sent" },
    max_age = { "duration", default = "10m", doc = "how long a browser remembers a preflight" },
  },
}

function M.init(conf)
  local any, allowed = false, {}
  for _, origin in ipairs(conf.origins) do
    any = any or origin == "*"
    allowed[origin] = true
  end
  assert(not (any and conf.credentials), "origins = [\"*\"] and credentials = true: browsers refuse that, name the origins")
  return {
    any = any,
    allowed = allowed,
    methods = table.concat(conf.methods, ", "),
    headers = table.concat(conf.headers, ", "),
    expose = table.concat(conf.expose, ", "),
  }
end

local function allowed(origin, conf)
  if conf.state.any then
    return "*"
  end
  return origin and conf.state.allowed[origin] and origin or nil
end

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  if req.method == "OPTIONS" and req.headers["Origin"] and req.headers["Access-Control-Request-Method"] then
    return gw.respond(204) -- on_response adds what it says
  end
end

---@param res gw.Response
---@param ctx gw.Context
---@param conf table
function M.on_response(res, ctx, conf)
  local origin = res.req.headers["Origin"]
  if not conf.state.any then
    res.headers:add("Vary", "Origin")
  end
  local allow = origin and allowed(origin, conf)
  if not allow then
    return
  end
  res.headers["Access-Control-Allow-Origin"] = allow
  if conf.credentials then
    res.headers["Access-Control-Allow-Credentials"] = "true"
  end
  if res.req.method == "OPTIONS" and res.source == "filter" then
    res.headers["Access-Control-Allow-Methods"] = conf.state.methods
    res.headers["Access-Control-Allow-Headers"] = conf.state.headers
    res.headers["Access-Control-Max-Age"] = conf.max_age
  elseif conf.state.expose ~= "" then
    res.headers["Access-Control-Expose-Headers"] = conf.state.expose
  end
end

return M
