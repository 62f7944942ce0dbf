local function request(t, subject)
  return t.request {
    tls = subject and { subject = subject, fingerprint = "ab" .. #subject },
    headers = { ["X-Client-Subject"] = "CN=root" },
  }
end

test("tells the upstream whose certificate it is", function(t)
  t.config { headers = { ["X-Client-Subject"] = "subject", ["X-Client-Org"] = "o" } }
  local res = request(t, "CN=tom,O=Example")
  t.equal(res.status, 200)
  t.equal(res.forwarded.headers["X-User-Id"], "tom")
  t.equal(res.forwarded.headers["X-Client-Subject"], "CN=tom,O=Example")
  t.equal(res.forwarded.headers["X-Client-Org"], "Example")
end)

test("lets nobody in without a certificate", function(t)
  t.config {}
  local res = request(t, nil)
  t.equal(res.status, 401)
  t.contains(res.body, '"message":"client certificate required"')
end)

test("lets in those that are allowed alone", function(t)
  t.config { allow = { ["cn=robot, o=Example"] = "r2" } }
  t.equal(request(t, "CN=robot,O=Example").forwarded.headers["X-User-Id"], "r2")
  t.equal(request(t, "CN=robot,O=Other").status, 403)
end)
