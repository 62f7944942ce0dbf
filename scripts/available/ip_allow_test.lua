local function status(t, address)
  return t.request({ client_ip = address }).status
end

test("lets in the networks that are listed", function(t)
  t.config { allow = { "10.0.0.0/8", "2001:db8::/32" }, deny = { "10.1.2.3" } }
  t.equal(status(t, "10.9.9.9"), 200)
  t.equal(status(t, "2001:db8::1"), 200)
  t.equal(status(t, "10.1.2.3"), 403)
  t.equal(status(t, "192.0.2.1"), 403)
end)

test("lets everybody in but whom it denies", function(t)
  t.config { deny = { "192.0.2.0/24" }, status = 404 }
  t.equal(status(t, "10.0.0.1"), 200)
  t.equal(status(t, "192.0.2.77"), 404)
end)

test("is refused with what is no network", function(t)
  t.config { allow = { "10.0.0.0/33" } }
  t.contains(t.refused(), "is no network")
end)
