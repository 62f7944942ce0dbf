-- Asks a service about every request, and tells the upstream what it said: one header of the answer, and the length of its body.
-- Refusals and slowness of that service are this filter's errors: on_error says what they do to the request.
local M = {
  stage = "transform",
  config = {
    upstream = { "string", required = true, doc = "who is asked" },
    path = { "string", default = "/" },
    header = { "string", default = "X-Verdict", doc = "header of the answer that is passed on" },
    timeout = { "duration", default = "5s" },
  },
}

function M.on_request(req, ctx, conf)
  local answer, err = gw.http.post {
    upstream = conf.upstream,
    path = conf.path,
    json = { method = req.method, path = req.path },
    timeout = conf.timeout,
  }
  if not answer or answer.status >= 400 then
    error(err or "refused with " .. answer.status)
  end
  req.headers[conf.header] = answer.headers[conf.header]
  req.headers["X-Verdict-Length"] = #answer.body
end

return M
