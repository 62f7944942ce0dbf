-- Tells the upstream how long the request's body is, and the client how long the answer's is, and takes a header away.
local M = { stage = "transform" }

function M.on_request(req)
  req.headers["request_body_size"] = #req:body()
end

function M.on_response(res)
  local body = res:body()
  res.headers["response_body_size"] = body and #body -- nil where it is too large to be buffered: no header
  res.headers["foo"] = nil
end

return M
