-- Answers of JSON that are no success (2xx) become a page for people: the same status, HTML, the length of the page.
local page = [[
<!doctype html>
<title>Sorry</title>
<h1>That did not work</h1>
<p>We have been told. Please try again in a minute.</p>
]]

local M = { stage = "transform" }

function M.on_response(res)
  local kind = res.headers["Content-Type"] or ""
  if res.status >= 300 and res.status ~= 304 and gw.re.test(kind, "(?i)^application/([a-z.-]+\\+)?json\\b") then
    res:set_body(page)
    res.headers["Content-Type"] = "text/html; charset=utf-8"
  end
end

return M
