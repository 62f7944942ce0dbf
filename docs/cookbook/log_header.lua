-- Writes a request header into the access log. What holds secrets, such as Authorization, is shown as ***.
local M = {
  stage = "log",
  on_error = "continue",
  config = { header = { "string", required = true } },
}

function M.on_log(entry, ctx, conf)
  entry:write({ [conf.header] = entry.req.headers[conf.header] })
end

return M
