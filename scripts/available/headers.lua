-- Sets, adds and removes lines of the request's head and of the answer's. With stage = "log" it comes before filters that refuse, and changes
-- their answers too.
--
--   [route.filter.headers]
--   set = { X-Tenant = "acme" }
--   answer_remove = ["Server"]

---@type gw.Filter
local M = {
  stage = "transform",
  config = {
    remove = { "list", of = "string", default = {}, doc = "of the request, before the others" },
    set = { "map", of = "string", default = {}, doc = "in place of what the client sent" },
    add = { "map", of = "string", default = {}, doc = "a line more" },
    answer_remove = { "list", of = "string", default = {} },
    answer_set = { "map", of = "string", default = {} },
    answer_add = { "map", of = "string", default = {} },
  },
}

local function change(headers, remove, set, add)
  for _, name in ipairs(remove) do
    headers[name] = nil
  end
  for name, value in pairs(set) do
    headers[name] = value
  end
  for name, value in pairs(add) do
    headers:add(name, value)
  end
end

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  change(req.headers, conf.remove, conf.set, conf.add)
end

---@param res gw.Response
---@param ctx gw.Context
---@param conf table
function M.on_response(res, ctx, conf)
  change(res.headers, conf.answer_remove, conf.answer_set, conf.answer_add)
end

return M
