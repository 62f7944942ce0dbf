-- Puts the headers that protect browsers on every answer, refusals included; what the upstream has set stays.

---@type gw.Filter
local M = {
  stage = "log",
  config = {
    headers = {
      "map",
      of = "string",
      default = {
        ["Strict-Transport-Security"] = "max-age=31536000; includeSubDomains",
        ["X-Content-Type-Options"] = "nosniff",
        ["X-Frame-Options"] = "DENY",
        ["Referrer-Policy"] = "strict-origin-when-cross-origin",
        ["Content-Security-Policy"] = "default-src 'self'",
      },
    },
    remove = { "list", of = "string", default = { "Server", "X-Powered-By" }, doc = "answer headers that nobody needs to see" },
  },
}

---@param res gw.Response
---@param ctx gw.Context
---@param conf table
function M.on_response(res, ctx, conf)
  for _, name in ipairs(conf.remove) do
    res.headers[name] = nil
  end
  for name, value in pairs(conf.headers) do
    if res.headers[name] == nil then
      res.headers[name] = value
    end
  end
end

return M
