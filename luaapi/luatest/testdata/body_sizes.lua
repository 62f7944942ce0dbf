-- The upstream learns how long the request's body is, the client how long the answer's; the answer loses a header.
local M = { stage = "transform" }

function M.on_request(req)
  req.headers["request_body_size"] = #req:body()
end

function M.on_response(res)
  local body = res:body()
  res.headers["response_body_size"] = body and #body or "too large"
  res.headers["foo"] = nil
end

return M
