-- What the request said is used when the answer comes and when the line is logged: ctx carries it.
local M = { stage = "transform" }

function M.on_request(req, ctx)
  ctx.tenant = req.headers["X-Tenant"]
  ctx.client = req.headers["X-Client-Version"]
end

function M.on_response(res, ctx)
  res.headers["X-Tenant"] = ctx.tenant
  res.headers["X-Client-Version"] = ctx.client
end

function M.on_log(entry, ctx)
  entry:write({ tenant = ctx.tenant, client = ctx.client })
end

return M
