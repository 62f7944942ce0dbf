-- Sends a request elsewhere than its route says: to the upstream of the first rule that fits. A rule looks at a header,
-- at the user, or at a field of a JSON body, and compares it with one text or a list of them.
--
--   [route.filter.routing]
--   rules = [
--     { header = "X-Version", equals = "v2", upstream = "canary" },
--     { user = true, one_of = ["tom", "ann"], upstream = "canary" },
--     { json = "env", equals = "canary", upstream = "canary" },
--   ]

---@type gw.Filter
local M = {
  stage = "route",
  config = { rules = { "list", of = { "map" }, required = true } },
}

---@param conf table
function M.init(conf)
  for i, rule in ipairs(conf.rules) do
    assert(rule.header or rule.user or rule.json, "rule " .. i .. " looks at nothing: header, user or json")
    assert(rule.equals or rule.one_of, "rule " .. i .. " compares with nothing: equals or one_of")
    assert(gw.upstream.exists(rule.upstream or ""), "rule " .. i .. ": there is no upstream " .. tostring(rule.upstream))
  end
end

-- What a rule looks at; nil when it is not there. A body that is no JSON, or larger than body_buffer, fits no rule.
local function look(rule, req, ctx)
  if rule.header then
    return req.headers[rule.header]
  elseif rule.user then
    return ctx.user
  elseif req:body_fits() then
    return (req:json_get(rule.json))
  end
end

local function fits(rule, value)
  for _, wanted in ipairs(rule.one_of or { rule.equals }) do
    if value == wanted then
      return true
    end
  end
end

---@param req gw.Request
---@param ctx gw.Context
---@param conf table
function M.on_request(req, ctx, conf)
  for _, rule in ipairs(conf.rules) do
    if fits(rule, look(rule, req, ctx)) then
      ctx.upstream = rule.upstream
      return
    end
  end
end

return M
