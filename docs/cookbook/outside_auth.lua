-- Lets a service decide who may pass. A refusal goes to the client as the service gave it: status, body and one header. No answer is no pass.
local M = {
  stage = "auth",
  config = {
    upstream = { "string", required = true, doc = "who decides" },
    path = { "string", default = "/" },
    timeout = { "duration", default = "1s" },
    header = { "string", default = "WWW-Authenticate", doc = "header of a refusal that is passed on" },
  },
}

function M.on_request(req, ctx, conf)
  local answer, err = gw.http.get {
    upstream = conf.upstream,
    path = conf.path,
    timeout = conf.timeout,
    headers = {
      Authorization = req.headers["Authorization"],
      ["X-Original-Method"] = req.method,
      ["X-Original-URI"] = req.raw_path,
    },
  }
  if not answer then
    gw.log.warn("nobody decides", { error = err })
    return gw.respond(503, "cannot be authorised now")
  end
  if answer.status >= 300 then
    return gw.respond(answer.status, answer.body, {
      ["Content-Type"] = answer.headers["Content-Type"],
      [conf.header] = answer.headers[conf.header],
    })
  end
  ctx.user = answer.headers["X-User"]
end

return M
