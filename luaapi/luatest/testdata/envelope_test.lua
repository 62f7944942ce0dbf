local function body(t, status, text)
  t.answer { status = status, body = text }
  local res = t.request {}
  t.equal(res.status, status)
  return res.body
end

test("wraps failures", function(t)
  local text = body(t, 401, '{"detail_message":"no"}')
  t.contains(text, '"success":false')
  t.contains(text, '"detailMessage":"no"')
end)

test("wraps successes and shapes collections", function(t)
  t.contains(body(t, 200, '{"a":[]}'), '"a":[],"success":true')
  local text = body(t, 200, '{"collection":[{"path":"/a"},{"path":"/b"}]}')
  t.contains(text, '"total":2')
  t.contains(text, '"paths":["/a","/b"]')
  t.contains(body(t, 200, '{"collection":[]}'), '"paths":[]')
end)

test("leaves alone what is no JSON", function(t)
  t.equal(body(t, 200, "<html>"), "<html>")
end)
