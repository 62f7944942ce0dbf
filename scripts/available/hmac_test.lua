local key = ("k"):rep(32)

test("lets nobody in without a signature", function(t)
  t.config { apps = { billing = key } }
  local res = t.request {}
  t.equal(res.status, 401)
  t.contains(res.body, '"message":"signature required"')
  t.equal(res.headers["WWW-Authenticate"], 'HMAC-SHA256 realm="api"')
end)

test("refuses a signature of another time or key", function(t)
  t.config { apps = { billing = key, audit = { secret = key .. key, hash = "sha512" } } }
  for _, line in ipairs {
    'HMAC-SHA256 key="billing", time="1700000000", nonce="b2RkLW5vbmNl", signature="AAAA"',
    'HMAC-SHA256 key="eve", time="1700000000", nonce="b2RkLW5vbmNl", signature="AAAA"',
    "HMAC-SHA512 nonsense",
  } do
    local res = t.request { headers = { Authorization = line } }
    t.equal(res.status, 401)
    t.contains(res.body, '"message":"signature invalid"')
  end
end)

test("is refused with a key that is too short", function(t)
  t.config { apps = { billing = "short" } }
  t.contains(t.refused(), "the secret of billing has 5 bytes")
  t.config { apps = { billing = { secret = key, hash = "md5" } } }
  t.contains(t.refused(), "apps.billing.hash")
end)

test("is refused with a Redis that there is not", function(t)
  t.config { apps = { billing = key }, redis = "main" }
  t.contains(t.refused(), "there is no [redis.main]")
end)
