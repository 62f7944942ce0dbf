-- Names the tenant for the upstream.
local M = { stage = "transform" }

---@param req gw.Request
function M.on_request(req)
  req.headers["X-Tenant-Id"] = "t-" .. (req.headers["X-Tenant"] or "none")
end

return M
