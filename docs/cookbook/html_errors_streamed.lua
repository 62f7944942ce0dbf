-- As html_errors, but for answers of any length: nothing is buffered. The page takes the place of the first chunk, the rest is swallowed.
local page = "<!doctype html>\n<title>Sorry</title>\n<h1>That did not work</h1>\n"

local M = { stage = "transform" }

function M.on_response(res, ctx)
  local kind = res.headers["Content-Type"] or ""
  if res.status >= 300 and res.status ~= 304 and gw.re.test(kind, "(?i)^application/([a-z.-]+\\+)?json\\b") then
    ctx.page = page
    res.headers["Content-Type"] = "text/html; charset=utf-8"
  end
end

function M.on_response_chunk(chunk, ctx)
  if ctx.page then
    local out = ctx.page
    ctx.page = ""
    return out
  end
end

return M
