test("lets nobody in without a password", function(t)
  t.config { url = "ldap://127.0.0.1:1", user_dn = "uid=%s,dc=example" }
  local res = t.request {}
  t.equal(res.status, 401)
  t.contains(res.headers["WWW-Authenticate"], 'Basic realm="api"')
end)

test("lets nobody in while the directory is gone", function(t)
  t.config { url = "ldap://127.0.0.1:1", user_dn = "uid=%s,dc=example" }
  t.equal(t.request({ headers = { Authorization = "Basic dG9tOmh1bnRlcjI=" } }).status, 503)
end)

test("is refused with what finds nobody", function(t)
  t.config { url = "ldap://127.0.0.1:1", base = "dc=example", filter = "(uid=tom)" }
  t.contains(t.refused(), "filter.ldap.filter")
  t.config { url = "ldap://127.0.0.1:1", user_dn = "uid=%s", bind_dn = "cn=x", base = "dc=x" }
  t.contains(t.refused(), "bind_password")
end)
