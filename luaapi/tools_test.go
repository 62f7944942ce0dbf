package luaapi_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

func TestURLsComeApartAndTogether(t *testing.T) {
	for url, want := range map[string]string{
		"https://tom:pw@Shop.Example:8443/a%2Fb;c?q=%zz&&r#top": "https tom:pw Shop.Example 8443 /a%2Fb;c q=%zz&&r top",
		"http://[2001:db8::1]/":                                 "http - 2001:db8::1 - / - -",
		"http://a.example":                                      "http - a.example -  - -",
		"/a/b?":                                                 "- - - - /a/b  -",
		"?x=1":                                                  "- - - -  x=1 -",
		"":                                                      "- - - -  - -",
		"mailto:tom@example.com":                                "mailto - - - tom@example.com - -",
		"//cdn.example/x":                                       "- - cdn.example - /x - -",
	} {
		holds(t, `
			local parts, err = gw.url.parse(req.headers["X-Url"])
			assert(parts, err)
			local got = {}
			for i, name in ipairs({ "scheme", "user", "host", "port", "path", "query", "fragment" }) do
				got[i] = parts[name] == nil and "-" or tostring(parts[name])
			end
			assert(table.concat(got, " ") == req.headers["X-Want"], table.concat(got, " "))
			assert(gw.url.build(parts) == req.headers["X-Url"], gw.url.build(parts))
		`, luatest.Request{Headers: lines("X-Url", url, "X-Want", want)})
	}
	holds(t, `
		for _, bad in ipairs({ "http://a b/", "http://a\r\n/", "http://[::1", "http://a:b/", "http://a:99999/", "%zz", ":", "http://a/\0" }) do
			local parts, err = gw.url.parse(bad)
			assert(parts == nil and type(err) == "string", bad)
		end
		assert(gw.url.build({ scheme = "https", host = "a.example", port = 444, path = "/x y", query = { q = { "a b", "ö" } }, fragment = "z" }) ==
			"https://a.example:444/x%20y?q=a%20b&q=%C3%B6#z")
		assert(gw.url.build({ path = "/a%20b?c" }) == "/a%20b%3Fc" and gw.url.build({}) == "" and gw.url.build({ host = "::1" }) == "//[::1]")
		for _, bad in ipairs({ { Host = "a" }, { host = "a/b" }, { host = "a\r\nb" }, { host = "a", port = 70000 }, { port = 80 }, { user = "x" }, { scheme = "1a" },
			{ host = "a", path = "b" }, { path = "//evil.example" }, { path = {} }, { host = "a@b" }, { "x" }, { host = "a:80" } }) do
			assert(not pcall(gw.url.build, bad), gw.json.encode(bad))
		end
		local first, all = gw.url.parse_query("a=1&b=%20+x&a=2&&c&d=%zz&=e&%61=3")
		assert(first.a == "1" and first.b == "  x" and first.c == "" and first.d == "%zz" and first[""] == "e")
		assert(#all.a == 3 and all.a[3] == "3" and #all.c == 1)
		assert(next(gw.url.parse_query("")) == nil)
	`, luatest.Request{})
}

func TestCookiesAreReadWrittenAndRefused(t *testing.T) {
	holds(t, `
		assert(gw.cookie.format("sid", "1") == "sid=1; Path=/; HttpOnly; SameSite=Lax")
		assert(gw.cookie.format("sid", "", { path = false, http_only = false, same_site = false }) == "sid=")
		assert(gw.cookie.format("a", "1", { path = "/x", domain = "a.example", max_age = 0, secure = true, same_site = "None", partitioned = true, other = "Priority=High" }) ==
			"a=1; Path=/x; Domain=a.example; Max-Age=0; Secure; HttpOnly; SameSite=None; Partitioned; Priority=High")
		for _, bad in ipairs({ { "", "1" }, { "a b", "1" }, { "a=", "1" }, { "a", "1;2" }, { "a", "1 2" }, { "a", "1,2" }, { "a", "é" }, { "a", "\\" }, { "a", "1\r\nX: y" }, { "a", "\0" },
			{ "a", "1", { Path = "/" } }, { "a", "1", { path = "/;x" } }, { "a", "1", { domain = "a\nb" } }, { "a", "1", { max_age = "1" } }, { "a", "1", { max_age = 1.5 } },
			{ "a", "1", { same_site = "lax" } }, { "a", "1", { same_site = "None" } }, { "a", "1", { secure = "no" } }, { "a", "1", { other = "x\r\ny" } }, { "a" } }) do
			assert(not pcall(gw.cookie.format, unpack(bad)), gw.json.encode(bad))
		end
		local cookies = gw.cookie.parse(' a=1; b="2" ;c; =d;a=3;e=f=g')
		assert(cookies.a == "1" and cookies.b == '"2"' and cookies.c == "" and cookies.e == "f=g" and cookies.d == nil)
		for _, line in ipairs({ "a=1", "a=b=c; Path=/; Secure", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=-1; HttpOnly; SameSite=Strict; Priority=High; X" }) do
			local name, value, options = gw.cookie.parse_set(line)
			assert(gw.cookie.format(name, value, options) == line, gw.cookie.format(name, value, options))
		end
		local name, value, options = gw.cookie.parse_set(" a = 1 ; SECURE; path = /x ;samesite=lax; max-age=soon; domain=")
		assert(name == "a" and value == "1" and options.secure and options.path == "/x" and options.same_site == "Lax" and options.max_age == false and options.domain == false)
		name, value = gw.cookie.parse_set("; Secure")
		assert(name == nil and type(value) == "string" and gw.cookie.parse_set("a") == nil)
	`, luatest.Request{})
}

func TestUpstreamCookiesCanBeMended(t *testing.T) {
	a := respond(t, `
		local lines = res.headers:all("Set-Cookie")
		res.headers["Set-Cookie"] = nil
		for _, line in ipairs(lines) do
			local name, value, options = gw.cookie.parse_set(line)
			options.secure, options.path = true, "/shop" .. (options.path or "/")
			res.headers:add("Set-Cookie", gw.cookie.format(name, value, options))
		end
	`, luatest.Answer{Status: 200, Headers: lines("Set-Cookie", "a=1; Path=/x", "Set-Cookie", "b=2; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly")})
	want := lines("Set-Cookie", "a=1; Path=/shop/x; Secure", "Set-Cookie", "b=2; Path=/shop/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Secure; HttpOnly")
	if a.Err != nil || fmt.Sprint(a.Headers) != fmt.Sprint(want) {
		t.Errorf("%v %q", a.Err, a.Headers)
	}
}

func TestAddressesAreParsedAndPathsCaptured(t *testing.T) {
	holds(t, `
		for text, want in pairs({ ["10.1.2.3"] = "10.1.2.3 4 private", ["2001:DB8:0::1"] = "2001:db8::1 6 public", ["::ffff:127.0.0.1"] = "127.0.0.1 4 loopback",
			["fe80::1%eth0"] = "fe80::1 6 link_local", ["::"] = ":: 6 unspecified", ["224.0.0.1"] = "224.0.0.1 4 multicast", ["8.8.8.8"] = "8.8.8.8 4 public" }) do
			local address, version, kind = gw.ip.parse(text)
			assert(address .. " " .. version .. " " .. kind == want, text)
		end
		for _, bad in ipairs({ "", "1.2.3", "1.2.3.4.5", "01.2.3.4", "localhost", "10.0.0.0/8", "1.2.3.4\n" }) do
			local address, err = gw.ip.parse(bad)
			assert(address == nil and err, bad)
		end
		local found = gw.path.capture({ "/health", "/users/{id}/orders/{order}/**" }, "/users/4%2F2;v=1/orders/7/x")
		assert(found.id == "4%2F2" and found.order == "7")
		assert(gw.path.capture("/users/{id}", "/users/") == nil and next(gw.path.capture("/health", "/health")) == nil)
	`, luatest.Request{})
}

// TestSetsOfNetworksDecideAsOneByOne compares sets with the obvious way.
func TestSetsOfNetworksDecideAsOneByOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	address := func() netip.Addr {
		if random.IntN(2) == 0 {
			return netip.AddrFrom4([4]byte{10, byte(random.IntN(3)), byte(random.IntN(256)), byte(random.IntN(256))})
		}
		var b [16]byte
		b[0], b[1], b[7], b[8], b[15] = 0x20, byte(random.IntN(2)), byte(random.IntN(4)), byte(random.IntN(256)), byte(random.IntN(256))
		return netip.AddrFrom16(b)
	}
	for range 30 {
		var networks []netip.Prefix
		var texts []string
		for range random.IntN(200) {
			a := address()
			n := netip.PrefixFrom(a, a.BitLen()/3+random.IntN(a.BitLen()*2/3+1)).Masked()
			networks, texts = append(networks, n), append(texts, n.String())
		}
		var asked []string
		for range 300 {
			a := address()
			is := false
			for _, n := range networks {
				is = is || n.Contains(a)
			}
			asked = append(asked, fmt.Sprintf("[%q]=%t", a, is))
		}
		b := bench(t, "[scripts]\nbudget = \"5s\"\n", map[string]string{"filter": `
			local set = gw.ip.set([[` + strings.Join(texts, "\n") + `]])
			return { stage = "transform", on_request = function()
				for address, is in pairs({ ` + strings.Join(asked, ",") + ` }) do
					assert(set:has(address) == is and gw.ip.match(set, address) == is, address)
				end
			end }`})
		if a := b.Do(luatest.Request{}); a.Err != nil {
			t.Fatalf("%v\n%s", a.Err, texts)
		}
	}
	b := bench(t, "", map[string]string{"filter": `
		local all = gw.ip.set({ "0.0.0.0/0", "::/0", "255.255.255.255", "10.0.0.1" })
		assert(all:has("255.255.255.255") and all:has("0.0.0.0") and all:has("ffff::") and all:has("::ffff:1.2.3.4") and not all:has("x") and #all == 2)
		assert(not gw.ip.set({}):has("10.0.0.1") and #gw.ip.set("# none\n\n  \r\n") == 0)
		local ok, err = pcall(gw.ip.set, "10.0.0.0/8\n10.0.0.0/33")
		assert(not ok and err:find('line 2: "10.0.0.0/33" is no network', 1, true), err)
		assert(not pcall(function() all.x = 1 end) and not pcall(function() return all:contains("x") end) and not pcall(all.has, "10.0.0.1"))
		return { stage = "transform", on_request = function() gw.ip.set({}) end }`})
	if a := b.Do(luatest.Request{}); a.Err == nil || !strings.Contains(a.Err.Error(), "filter.lua:8: gw.ip.set cannot be called in on_request; it may be called in the file itself, init") {
		t.Error(a.Err)
	}
}

func TestLogsOfScriptsShowNoSecrets(t *testing.T) {
	b := bench(t, "[log]\nmask = [\"Date-Of-Birth\"]\n[filter.filter]\nkey = \"s3cr3t-key\"\nmore = [\"s3cr3t-key-two\"]\n", map[string]string{"filter": `
		return { stage = "transform", config = { key = "secret", more = { "list", of = "secret" } },
		on_request = function(req, ctx, conf)
			gw.log.info("with " .. conf.key, { Authorization = "Bearer abc", password = 1, date_of_birth = "1970", user = "tom", note = "k=" .. conf.more[1],
				headers = { ["Set-Cookie"] = "sid=abc", deep = { { api_key = "abc", fine = conf.key } } }, [conf.key] = true })
			print("printed", conf.key)
			ctx.key = conf.key
			error("failed with " .. conf.key)
		end,
		on_log = function(entry, ctx) entry:write({ cookie = "sid=abc", what = ctx.key, list = { "x" } }) end }`})
	a := b.Do(luatest.Request{})
	log := b.Log()
	for _, secret := range []string{"s3cr3t", "abc", "1970", ":1,"} {
		if all := log + strings.Join(b.Lines, "") + fmt.Sprint(a.Err); strings.Contains(all, secret) {
			t.Errorf("%q is shown: %s", secret, all)
		}
	}
	for _, want := range []string{`"msg":"with ***"`, `"Authorization":"***"`, `"password":"***"`, `"date_of_birth":"***"`, `"user":"tom"`, `"note":"k=***"`, `printed\t***`,
		`\"Set-Cookie\":\"***\"`, `\"api_key\":\"***\",\"fine\":\"***\"`} {
		if !strings.Contains(log, want) {
			t.Errorf("%s is not in %s", want, log)
		}
	}
	if len(b.Lines) != 1 || b.Lines[0] != `,"cookie":"***","what":"***","list":["x"]` || a.Err == nil || !strings.Contains(a.Err.Error(), "failed with ***") {
		t.Errorf("%q %v", b.Lines, a.Err)
	}
}
