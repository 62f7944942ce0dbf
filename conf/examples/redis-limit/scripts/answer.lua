-- Answers every request that comes here with a text.

---@type gw.Filter
local M = {
  stage = "transform",
  config = { text = { "string", required = true, doc = "what is answered" } },
}

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  return gw.respond(200, conf.text, { ["Content-Type"] = "text/plain; charset=utf-8" })
end

return M
