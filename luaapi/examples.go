package luaapi

// examples show every function of the binding table at work. Documentation prints them and a test runs each as the body of the
// function in which it may be called, for a request that exampleRequest in docs_test.go describes.
var examples = map[string]string{
	"gw.respond": `if req.headers["X-Api-Key"] == nil then
  return gw.respond(401, "an API key is needed", { ["WWW-Authenticate"] = "ApiKey" })
end
return gw.respond(200, { hello = "world", list = gw.json.array {} })`,
	"gw.redirect": `if req.scheme == "http" then
  return gw.redirect("https://" .. req.host .. req.raw_path, 308)
end`,
	"gw.log.debug": `gw.log.debug("cache missed", { key = req.path })`,
	"gw.log.info":  `gw.log.info("order seen", { path = req.path, items = 3 })`,
	"gw.log.warn":  `gw.log.warn("old client", { agent = req.headers["User-Agent"] })`,
	"gw.log.error": `gw.log.error("key service failed", { error = "timed out" })`,

	"gw.json.decode": `local doc = gw.json.decode('{"id":12345678901234567890,"list":[],"none":null}')
assert(tostring(doc.id) == "12345678901234567890")
assert(doc.none == gw.json.null)
local value, err = gw.json.decode("{")
assert(value == nil and err == "not JSON: a member's name was expected at byte 2")`,
	"gw.json.encode": `assert(gw.json.encode({ 1, 2.5, "three" }) == '[1,2.5,"three"]')
assert(gw.json.encode({ empty = {}, list = gw.json.array {} }) == '{"empty":{},"list":[]}')`,
	"gw.json.get":   `assert(gw.json.get('{"user":{"roles":["admin"]}}', "user.roles.0") == "admin")`,
	"gw.json.array": `assert(gw.json.encode(gw.json.array {}) == "[]")`,

	"gw.jwt.verify": `local claims, err, reason, status, challenge = gw.jwt.verify(req.bearer, { secret = ("k"):rep(32) })
if not claims then
  gw.log.info("refused", { reason = reason })
  return gw.respond(status, err, { ["WWW-Authenticate"] = challenge })
end
ctx.user = claims.sub`,
	"gw.jwt.check": `gw.jwt.check({ secret = ("k"):rep(32), algorithm = "HS256" })`,

	"gw.auth.jwt": `local verifier = gw.auth.jwt({
  jwks_url = "https://id.example.com/jwks.json",
  issuer = "https://id.example.com",
  claims = { scope = { contains = "orders:read" }, role = { "admin", "ops" } },
})`,
	"gw.auth.api_key": `local verifier = gw.auth.api_key({
  keys = { acme = { hash = "sha256:" .. gw.crypto.hex_encode(gw.crypto.sha256("a key")), tier = "gold", routes = { "orders" } } },
})`,
	"gw.auth.basic": `local verifier = gw.auth.basic({
  users = "tom:$2a$04$KSnBIeiQsLEyPXvqt6FOQ.H8yGcXCWvnq1Eb1HscmXYLYZ1vMeY8.",
  realm = "orders",
})`,
	"gw.auth.hmac": `local verifier = gw.auth.hmac({ apps = { billing = ("k"):rep(32), audit = { secret = ("k"):rep(64), hash = "sha512" } } })`,
	"gw.auth.introspection": `local verifier = gw.auth.introspection({
  url = "https://id.example.com/introspect",
  client_id = "gateway",
  client_secret = "...",
  keep = "30s",
})`,
	"gw.auth.forward":     `local verifier = gw.auth.forward({ url = "http://auth.internal/check", take = { "X-Auth-Role" } })`,
	"gw.auth.certificate": `local verifier = gw.auth.certificate({ allow = { ["CN=robot,O=Example"] = "robot" } })`,
	"gw.auth.ldap": `local verifier = gw.auth.ldap({
  url = "ldaps://ldap.example.com",
  base = "ou=people,dc=example,dc=com",
  filter = "(uid=%s)",
  attributes = { "memberOf" },
  claims = { memberof = { contains = "cn=ops,ou=groups,dc=example,dc=com" } },
})`,
	"gw.auth.network": `local verifier = gw.auth.network({ networks = { office = { "192.0.2.0/24", "2001:db8::/32" } }, deny = "192.0.2.66" })`,
	"gw.auth.policy": `local verifier = gw.auth.policy({
  require = "any",
  verifiers = {
    office = { kind = "network", networks = { office = "192.0.2.0/24" } },
    tokens = { kind = "jwt", secret = ("k"):rep(32) },
  },
})`,
	"verifier:verify": `local who, refusal = verifier:verify(req)
if not who then
  gw.log.info("refused", { reason = refusal.reason })
  return gw.auth.refuse(refusal)
end
ctx.user = who.user`,
	"gw.auth.refuse": `local who, refusal = verifier:verify(req)
if not who then
  return gw.auth.refuse(refusal)
end`,
	"gw.auth.claim": `local who = verifier:verify(req)
if who then
  req.headers["X-Tenant"] = gw.auth.claim(who, "org.id")
end`,
	"gw.auth.tell": `local who = verifier:verify(req)
if who then
  gw.auth.tell(req, who, { ["X-Tenant"] = "org.id", ["X-Roles"] = "roles" })
end`,
	"gw.jwt.sign": `local token = gw.jwt.sign({ sub = "gateway" }, { secret = ("k"):rep(32) }, 60)
req.headers["Authorization"] = "Bearer " .. token`,

	"gw.limit.take": `local ok, info = gw.limit.take("partners", gw.limit.key("header:X-Partner"))
if not ok then
  return gw.respond(429, "too many requests", { ["Retry-After"] = info.retry_after })
end`,
	"gw.limit.acquire": `local ok, info = gw.limit.acquire("exports", gw.limit.key("ip"))
if not ok then
  return gw.respond(429, info.limit .. " exports at once are enough", { ["Retry-After"] = info.retry_after })
end`,
	"gw.limit.release": `if gw.limit.acquire("exports", "one") then
  assert(gw.limit.release("exports", "one"))
end
assert(not gw.limit.release("exports", "one"))`,
	"gw.limit.peek": `local ok, info = gw.limit.peek("partners", "shop")
assert(ok and info.remaining == info.limit and info.reset == 0)`,
	"gw.limit.reset": `gw.limit.take("partners", "shop")
local ok, err = gw.limit.reset("partners", "shop")
assert(ok and not err)`,
	"gw.limit.headers": `local ok, info = gw.limit.take("partners", "shop")
local headers = gw.limit.headers(info, "draft")
assert(headers["RateLimit"]:find('^"partners";r='))
if not ok then
  return gw.respond(429, "too many requests", headers)
end`,
	"gw.limit.key": `assert(gw.limit.key("ip") == "ip:" .. req.client_ip)
assert(gw.limit.key("user") == gw.limit.key("ip")) -- nobody is known yet`,

	"gw.balance.pick": `local endpoint, err = gw.balance.pick("main", req.client_ip)
if endpoint then
  ctx.endpoint = endpoint
  assert(endpoint.upstream == "main")
end`,
	"gw.upstream.exists": `assert(gw.upstream.exists("main") and not gw.upstream.exists("nowhere"))`,
	"gw.upstream.names":  `assert(gw.upstream.names()[1] == "canary")`,
	"gw.upstream.ready": `local ready, all = gw.upstream.ready("main")
if ready < all / 2 then
  ctx.upstream = "canary"
end`,
	"gw.upstream.endpoints": `for _, state in ipairs(gw.upstream.endpoints("main")) do
  if state.ready and state.in_flight < 10 then
    ctx.endpoint = state.endpoint
    break
  end
end`,

	"gw.http.request": `local answer, err = gw.http.request {
  method = "PUT", upstream = "main", path = "/seen", query = { user = ctx.user or "nobody" }, json = { path = req.path }, timeout = 2,
}
if not answer then
  return gw.respond(503, "cannot be checked now")
elseif answer.status ~= 200 then
  return gw.respond(answer.status, answer.body, { ["Content-Type"] = answer.headers["Content-Type"] or "text/plain" })
end
req.headers["X-Checked"] = answer.headers["X-Result"]`,
	"gw.http.get": `local answer, err = gw.http.get("https://keys.example.com/current", { query = { tenant = "a b" }, timeout = "500ms" })
if answer then
  req.headers["X-Key"] = answer.headers["X-Key"]
end
answer = gw.http.get { upstream = "main", path = "/health" }`,
	"gw.http.post": `local answer, err = gw.http.post("https://auth.example.com/introspect", {
  form = { token = "abc" }, headers = { Accept = "application/json" },
})`,
	"gw.http.all": `local answers, errs = gw.http.all {
  user = { upstream = "main", path = "/users/42" },
  orders = { upstream = "main", path = "/orders", query = { user = 42 } },
}
if answers.user then
  ctx.tier = answers.user:json_get("tier")
end
if errs.orders then
  gw.log.warn("orders are missing", { error = errs.orders })
end`,
	"answer:json": `local answer = assert(gw.http.get { upstream = "main", path = "/users/42" })
local doc, err = answer:json()
if doc then
  ctx.tier = doc.tier
end`,
	"answer:json_get": `local answer = assert(gw.http.get { upstream = "main", path = "/users/42" })
ctx.tier = answer:json_get("account.tier")`,
	"gw.mirror": `gw.mirror("canary", { fraction = 0.1, headers = { ["X-Shadow"] = "1" } })`,
	"gw.delay": `if req.headers["User-Agent"] == "scraper" then
  gw.delay(0.5)
end`,

	"gw.shared.get": `gw.shared.set("flags", "maintenance", true)
assert(gw.shared.get("flags", "maintenance") == true)
assert(gw.shared.get("flags", "unknown") == nil)`,
	"gw.shared.set": `assert(gw.shared.set("tokens", "abc", "tom", 60)) -- for a minute
assert(gw.shared.set("tokens", "abc", nil))`,
	"gw.shared.add": `assert(gw.shared.add("nonces", "n-1", true, 300) == true)
assert(gw.shared.add("nonces", "n-1", true, 300) == false) -- seen before`,
	"gw.shared.incr": `assert(gw.shared.incr("visits", req.path) == 1)
assert(gw.shared.incr("visits", req.path, 2) == 3)`,
	"gw.shared.cas": `local swapped, current = gw.shared.cas("leases", "nightly", nil, req.client_ip, 60)
assert(swapped and current == req.client_ip) -- nobody had it
assert(not gw.shared.cas("leases", "nightly", nil, "another"))`,
	"gw.shared.ttl": `gw.shared.set("tokens", "t1", "tom", 60)
assert(gw.shared.ttl("tokens", "t1") <= 60 and gw.shared.ttl("tokens", "t2") == nil)`,
	"gw.shared.expire": `gw.shared.rpush("recent", req.client_ip, req.path)
assert(gw.shared.expire("recent", req.client_ip, 3600))`,
	"gw.shared.lpush": `gw.shared.lpush("stack", "s", 1)
assert(gw.shared.lpush("stack", "s", 2) == 2 and gw.shared.lpop("stack", "s") == 2)`,
	"gw.shared.rpush": `if gw.shared.rpush("last paths", req.client_ip, req.path) > 10 then
  gw.shared.lpop("last paths", req.client_ip)
end`,
	"gw.shared.lpop": `gw.shared.rpush("jobs", "mail", "a")
gw.shared.rpush("jobs", "mail", "b")
assert(gw.shared.lpop("jobs", "mail") == "a" and gw.shared.lpop("jobs", "none") == nil)`,
	"gw.shared.rpop": `gw.shared.rpush("free servers", "eu", "s1")
assert(gw.shared.rpop("free servers", "eu") == "s1")`,
	"gw.shared.llen": `gw.shared.rpush("queue", "q", true)
assert(gw.shared.llen("queue", "q") == 1 and gw.shared.llen("queue", "none") == 0)`,
	"gw.shared.delete": `gw.shared.set("tokens", "xyz", 1)
assert(gw.shared.delete("tokens", "xyz") and not gw.shared.delete("tokens", "xyz"))`,

	"gw.cache.get_or": `local key, err = gw.cache.get_or("key:" .. req.host, 300, function()
  return "secret of " .. req.host -- asked of a key service, say
end, { stale = 3600 })
assert(key == "secret of example.com" and err == nil)`,
	"gw.cache.get": `assert(gw.cache.get("nobody") == nil)`,
	"gw.cache.set": `gw.cache.set("allowed", { "192.0.2.0/24" }, 60)
assert(gw.ip.match(gw.cache.get("allowed"), "192.0.2.7"))`,
	"gw.cache.delete": `gw.cache.set("session", "s1", 60)
assert(gw.cache.delete("session") and gw.cache.get("session") == nil)`,

	"gw.redis.call": `local blocked, err = gw.redis.call({ "main", timeout = "50ms" }, "SISMEMBER", "blocked", req.client_ip)
if err then
  gw.log.warn("deny list not asked", { error = err })
elseif blocked == 1 then
  return gw.respond(403)
end`,
	"gw.redis.pipeline": `local answers, err = gw.redis.pipeline("main", {
  { "INCR", "visits:" .. req.client_ip },
  { "EXPIRE", "visits:" .. req.client_ip, 60 },
})
if answers and not err then
  req.headers["X-Visits"] = answers[1]
end`,
	"gw.redis.eval": `local left, err = gw.redis.eval("main", [[
  local n = tonumber(redis.call("GET", KEYS[1]) or ARGV[1])
  if n > 0 then redis.call("SET", KEYS[1], n - 1) end
  return n
]], { "stock:" .. req.path }, { 100 })
if left == 0 then
  return gw.respond(410, "sold out")
end`,

	"gw.crypto.sha256": `assert(gw.crypto.hex_encode(gw.crypto.sha256("")):sub(1, 8) == "e3b0c442")`,
	"gw.crypto.sha384": `assert(#gw.crypto.sha384("x") == 48)`,
	"gw.crypto.encrypt": `local key = gw.crypto.sha256("a long secret of the settings")
req.headers["X-Session"] = gw.crypto.base64url_encode(gw.crypto.encrypt(key, "user 42", "session"))`,
	"gw.crypto.decrypt": `local key = gw.crypto.random(32)
local sealed = gw.crypto.encrypt(key, "user 42")
assert(gw.crypto.decrypt(key, sealed) == "user 42")
local data, err = gw.crypto.decrypt(key, sealed .. "x")
assert(data == nil and err == "not sealed with this key, or changed")`,
	"gw.crypto.sign": `local key = [[
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----]]
local signature = gw.crypto.sign("EdDSA", key, req.method .. " " .. req.path)
req.headers["X-Signature"] = gw.crypto.base64_encode(signature)`,
	"gw.crypto.verify": `local key = [[
-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
-----END PUBLIC KEY-----]]
local signature = gw.crypto.base64_decode(req.headers["X-Signature"] or "")
if not signature or not gw.crypto.verify("EdDSA", key, req:body(), signature) then
  return gw.respond(401, "the signature does not hold")
end`,
	"gw.crypto.sha512": `assert(#gw.crypto.sha512("x") == 64)`,
	"gw.crypto.sha1":   `assert(gw.crypto.hex_encode(gw.crypto.sha1("")):sub(1, 8) == "da39a3ee")`,
	"gw.crypto.md5":    `assert(gw.crypto.hex_encode(gw.crypto.md5("")) == "d41d8cd98f00b204e9800998ecf8427e")`,
	"gw.crypto.hmac": `local mac = gw.crypto.hmac("sha256", "key", req.method .. req.path)
req.headers["X-Signature"] = gw.crypto.base64_encode(mac)`,
	"gw.crypto.equal":            `assert(gw.crypto.equal("abc", "abc") and not gw.crypto.equal("abc", "abd"))`,
	"gw.crypto.random":           `assert(#gw.crypto.random(16) == 16)`,
	"gw.crypto.hex_encode":       `assert(gw.crypto.hex_encode("\1\255") == "01ff")`,
	"gw.crypto.hex_decode":       `assert(gw.crypto.hex_decode("01ff") == "\1\255" and gw.crypto.hex_decode("x") == nil)`,
	"gw.crypto.base64_encode":    `assert(gw.crypto.base64_encode("hello") == "aGVsbG8=")`,
	"gw.crypto.base64_decode":    `assert(gw.crypto.base64_decode("aGVsbG8=") == "hello")`,
	"gw.crypto.base64url_encode": `assert(gw.crypto.base64url_encode("\255\254") == "__4")`,
	"gw.crypto.base64url_decode": `assert(gw.crypto.base64url_decode("__4") == "\255\254")`,

	"gw.re.match": `local groups = gw.re.match(req.path, "^/users/(?P<id>[0-9]+)$")
assert(groups.id == "42" and groups[1] == "42")`,
	"gw.re.test": `assert(gw.re.test(req.path, "^/users/"))`,
	"gw.re.find": `local first, last = gw.re.find("id=42;", "[0-9]+")
assert(first == 4 and last == 5)`,
	"gw.re.gmatch": `for groups in gw.re.gmatch("a=1, b=2", "(?P<name>[a-z])=(?P<value>[0-9])") do
  req.query[groups.name] = groups.value
end`,
	"gw.re.split": `local parts = gw.re.split("gzip, br;q=0.5", "\\s*,\\s*")
assert(parts[2] == "br;q=0.5")`,
	"gw.re.replace": `req.path = gw.re.replace(req.path, "^/users/([0-9]+)$", "/v2/people/$1")
local masked = gw.re.replace("card 4111111111111111", "[0-9]{16}", function(groups)
  return groups[0]:sub(1, 4) .. "..."
end)
assert(masked == "card 4111...")`,
	"gw.path.match": `assert(gw.path.match({ "/health", "/users/*" }, req.path))
assert(gw.path.match("/users/**", "/users"))`,
	"gw.path.capture": `local found = gw.path.capture("/users/{id}", req.path)
assert(found.id == "42")`,

	"gw.ip.match": `if not gw.ip.match({ "192.0.2.0/24", "2001:db8::/32" }, req.client_ip) then
  return gw.respond(403, "not from here")
end`,
	"gw.ip.set": `local denied = gw.ip.set("192.0.2.0/24 # documentation\n2001:db8::/32")
assert(denied:has("192.0.2.7") and gw.ip.match(denied, "2001:db8::1") and #denied == 2)`,
	"set:has": `local office = gw.ip.set({ "10.0.0.0/8" })
assert(office:has("10.1.2.3") and not office:has("11.0.0.1"))`,
	"gw.ip.parse": `local address, version, kind = gw.ip.parse("::ffff:10.0.0.1")
assert(address == "10.0.0.1" and version == 4 and kind == "private")`,
	"gw.ip.valid":   `assert(gw.ip.valid("::1") and not gw.ip.valid("localhost"))`,
	"gw.url.encode": `assert(gw.url.encode("a b/ä") == "a%20b%2F%C3%A4")`,
	"gw.url.decode": `assert(gw.url.decode("a%20b+c") == "a b c" and gw.url.decode("%zz") == "%zz")`,
	"gw.url.query":  `assert(gw.url.query({ q = "a b" }) == "q=a%20b")`,
	"gw.url.parse": `local parts = gw.url.parse("https://shop.example:8443/a%2Fb?q=1#top")
assert(parts.host == "shop.example" and parts.port == 8443 and parts.path == "/a%2Fb" and parts.query == "q=1")
local none, err = gw.url.parse("http://[::1")
assert(none == nil and err ~= nil)`,
	"gw.url.build": `local parts = gw.url.parse("http://a.example/x?old=1")
parts.scheme, parts.query = "https", { page = 2 }
assert(gw.url.build(parts) == "https://a.example/x?page=2")`,
	"gw.url.parse_query": `local form, all = gw.url.parse_query("user=tom&tag=a&tag=b%20c")
assert(form.user == "tom" and form.tag == "a" and all.tag[2] == "b c")`,
	"gw.cookie.parse": `local cookies = gw.cookie.parse("sid=1; theme=dark")
assert(cookies.theme == "dark")`,
	"gw.cookie.parse_set": `local name, value, options = gw.cookie.parse_set("sid=1; Path=/; Secure")
options.http_only, options.same_site = true, "Strict"
assert(gw.cookie.format(name, value, options) == "sid=1; Path=/; Secure; HttpOnly; SameSite=Strict")`,
	"gw.cookie.format": `return gw.respond(200, "welcome", {
  ["Set-Cookie"] = gw.cookie.format("sid", gw.uuid.v4(), { max_age = 3600, secure = true }),
})`,

	"gw.time.now": `assert(gw.time.now() > 1.7e9)`,
	"gw.time.monotonic": `local before = gw.time.monotonic()
assert(gw.time.monotonic() >= before)`,
	"gw.time.format": `assert(gw.time.format(0) == "1970-01-01T00:00:00Z")
assert(gw.time.format(0, "http") == "Thu, 01 Jan 1970 00:00:00 GMT")
assert(gw.time.format(0, "2006-01-02") == "1970-01-01")`,
	"gw.time.parse": `assert(gw.time.parse("1970-01-01T00:01:00.5Z") == 60.5)`,
	"gw.time.every": `gw.time.every(60, function()
  gw.shared.incr("ticks", "n")
end)`,
	"gw.uuid.v4": `req.headers["X-Audit-Id"] = gw.uuid.v4()`,
	"gw.uuid.v7": `assert(gw.uuid.v7():sub(15, 15) == "7")`,

	"gw.metric.counter": `local refused = gw.metric.counter("refusals", { "reason" }, "Requests that this filter refused.")
refused:inc("no key")`,
	"gw.metric.gauge": `local depth = gw.metric.gauge("queue_depth")
depth:set(3)`,
	"gw.metric.histogram": `local took = gw.metric.histogram("lookup_seconds", { "cache" })
took:observe(0.003, "hit")`,
	"metric:inc": `local seen = gw.metric.counter("seen", { "tier" })
seen:inc("gold")`,
	"metric:add": `local bytes = gw.metric.counter("body_bytes")
bytes:add(1024)`,
	"metric:set": `local open = gw.metric.gauge("open_orders")
open:set(7)`,
	"metric:observe": `local age = gw.metric.histogram("age_seconds")
age:observe(0.25)`,

	"gw.env": `assert(gw.env("REGION") == "eu-1")`,
	"gw.file.read": `local page, err = gw.file.read("missing.html")
assert(page == nil and err ~= nil)`,

	"req:body": `assert(req:body() == '{"user":{"name":"tom"}}')`,
	"req:body_fits": `if req:body_fits() and req:json_get("user.name") == "tom" then
  ctx.upstream = "canary"
end`,
	"req:json": `local doc, err = req:json()
assert(doc.user.name == "tom")`,
	"req:json_get":  `assert(req:json_get("user.name") == "tom" and req:json_get("user.age") == nil)`,
	"req:set_body":  `req:set_body(gw.json.encode({ user = "tom" }))`,
	"req:query_all": `assert(req:query_all("tag")[2] == "b")`,
	"req:query_add": `req:query_add("via", "gateway")`,
	"res:body": `local body, err = res:body()
assert(body == '{"ok":true}')`,
	"res:json":     `assert(res:json().ok == true)`,
	"res:json_get": `assert(res:json_get("ok") == true)`,
	"res:set_body": `if res.status >= 400 then
  res:set_body("sorry")
  res.headers["Content-Type"] = "text/plain"
end`,
	"entry:write": `entry:write({ tier = "gold" })`,
}
