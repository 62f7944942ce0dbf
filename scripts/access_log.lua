-- Writes one line of the access log for each request. The gateway renders its members (time, ids, method, path, route,
-- upstream, status, bytes, milliseconds ...); what stands in the table below comes behind them.
-- Deleting this file, and its table in the configuration, ends the access log.

---@type gw.Filter
local M = {
  stage = "log",
  on_error = "continue", -- a log never fails a request
  config = {
    headers = { "list", of = "string", default = {}, doc = "request headers that are logged; secrets never belong here" },
    skip = { "list", of = "string", default = {}, doc = "paths that are not logged, such as /health or /static/**" },
  },
}

-- Whether lines are as the gateway renders them: conf.state.
---@param conf table
function M.init(conf)
  return #conf.skip == 0 and #conf.headers == 0
end

---@param entry gw.Entry
---@param ctx gw.Context
---@param conf table
function M.on_log(entry, ctx, conf)
  if conf.state then
    return entry:write()
  elseif gw.path.match(conf.skip, entry.path) then
    return
  end
  local headers = {}
  for _, name in ipairs(conf.headers) do
    headers[name] = entry.req.headers[name] -- the gateway masks Authorization, cookies and the like
  end
  entry:write(next(headers) and { headers = headers })
end

return M
