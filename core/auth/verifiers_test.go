package auth_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
)

// request is an exchange with these headers, "Name: value" each.
func request(target string, headers ...string) *core.Exchange {
	x := &core.Exchange{Route: &core.Route{ID: 1, Name: "orders", BodyBuffer: 1 << 10}}
	r := &x.Request
	r.Method, r.Scheme, r.Host = "GET", "https", []byte("Api.Example.com")
	path, query, has := strings.Cut(target, "?")
	r.RawPath, r.Path, r.RawQuery, r.HasQuery = []byte(path), []byte(path), []byte(query), has
	r.ClientIP = netip.MustParseAddr("192.0.2.7")
	r.Body.Attach(nil, 0)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return x
}

func withBody(x *core.Exchange, body string) *core.Exchange {
	x.Request.Method = "POST"
	x.Request.Body.Attach(strings.NewReader(body), int64(len(body)))
	return x
}

// outcome is what a verifier makes of a request, in one line.
func outcome(v auth.Verifier, x *core.Exchange) string {
	who, err := v.Verify(&patient{}, x)
	if err == nil {
		return who.Kind + " " + who.User
	}
	r := auth.AsRefusal(err)
	return fmt.Sprintf("%d %s", r.Status(), r.Error())
}

func challenges(v auth.Verifier, x *core.Exchange) []string {
	_, err := v.Verify(&patient{}, x)
	if err == nil {
		return nil
	}
	return auth.AsRefusal(err).Challenges()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAPIKeys(t *testing.T) {
	const gold, limited, old = "key-of-acme-0123456789", "key-of-bob-0123456789", "key-of-eve-0123456789"
	clock := now
	v := must(auth.NewAPIKeys(auth.APIKeysOptions{Realm: "orders", Clock: func() time.Time { return clock }, Keys: []auth.APIKey{
		{Hash: auth.HashAPIKey(gold), User: "acme", Tier: "gold", Rate: "100/s"},
		{Hash: auth.HashAPIKey(limited), User: "bob", Routes: []string{"users"}},
		{Hash: auth.HashAPIKey(old), User: "eve", Expires: now.Add(time.Minute)},
	}}))
	for name, test := range map[string]struct {
		x    *core.Exchange
		want string
	}{
		"good":               {request("/", "X-Api-Key: "+gold), "api_key acme"},
		"good, spelled low":  {request("/", "x-api-key: "+gold), "api_key acme"},
		"none":               {request("/"), "401 missing API key"},
		"empty":              {request("/", "X-Api-Key: "), "401 missing API key"},
		"wrong":              {request("/", "X-Api-Key: "+gold+"x"), "401 API key invalid"},
		"its hash":           {request("/", "X-Api-Key: "+auth.HashAPIKey(gold)), "401 API key invalid"},
		"two":                {request("/", "X-Api-Key: "+gold, "X-Api-Key: "+gold), "401 API key invalid"},
		"of another route":   {request("/", "X-Api-Key: "+limited), "403 not allowed"},
		"that ends later":    {request("/", "X-Api-Key: "+old), "api_key eve"},
		"longer than a line": {request("/", "X-Api-Key: "+strings.Repeat("k", 600)), "401 API key invalid"},
	} {
		if got := outcome(v, test.x); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
	clock = now.Add(time.Minute)
	if got := outcome(v, request("/", "X-Api-Key: "+old)); got != "401 API key expired" {
		t.Errorf("after its end: %s", got)
	}
	if got := challenges(v, request("/")); !slices.Equal(got, []string{`ApiKey realm="orders"`}) {
		t.Errorf("challenges %q", got)
	}
	who, err := v.Verify(&patient{}, request("/", "X-Api-Key: "+gold))
	if tier, _ := who.Claims.Get("tier"); err != nil || tier.Text() != "gold" {
		t.Errorf("tier %q, %v", tier.Text(), err)
	}
	for place, x := range map[auth.Place]*core.Exchange{
		{Scheme: "ApiKey"}: request("/", "Authorization: apikey  "+gold),
		{Query: "key"}:     request("/?a=1&key=" + strings.Replace(gold, "k", "%6b", 1)),
		{Cookie: "key"}:    request("/", "Cookie: a=b; key="+gold),
	} {
		v := must(auth.NewAPIKeys(auth.APIKeysOptions{Place: place, Keys: []auth.APIKey{{Hash: auth.HashAPIKey(gold), User: "acme"}}}))
		if got := outcome(v, x); got != "api_key acme" {
			t.Errorf("%+v: %s", place, got)
		}
		if got := outcome(v, request("/")); got != "401 missing API key" {
			t.Errorf("%+v, none: %s", place, got)
		}
	}
}

func TestAPIKeyLines(t *testing.T) {
	list, err := auth.ParseAPIKeys("# keys\n\n" + `{"hash":"` + auth.HashAPIKey("k") + `","user":"acme","tier":"gold","rate":"5/s","routes":["a","b"],"expires":"2027-01-01T00:00:00Z"}` + "\n")
	if err != nil || len(list) != 1 || list[0].User != "acme" || list[0].Tier != "gold" || len(list[0].Routes) != 2 || list[0].Expires.Year() != 2027 {
		t.Errorf("%+v, %v", list, err)
	}
	for text, want := range map[string]string{
		`{"user":"a","hash":1}`:             "line 1: hash is of another type",
		"\n{":                               "line 2: not JSON",
		`{"user":"a","user":"b"}`:           "line 1: a member appears twice",
		`{"usr":"a"}`:                       `line 1: there is no "usr" in a key: it has hash, user, tier, rate, routes, expires`,
		`{"user":"a","routes":[1]}`:         "line 1: routes is not a list of strings",
		`{"user":"a","expires":"tomorrow"}`: `line 1: expires is no time: write "2027-01-01T00:00:00Z"`,
	} {
		if _, err := auth.ParseAPIKeys(text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for want, o := range map[string]auth.APIKeysOptions{
		"no key: want at least one, or a store of them":                                    {},
		"a key without user, whom it names":                                                {Keys: []auth.APIKey{{Hash: auth.HashAPIKey("k")}}},
		`the key of a has no hash: want "sha256:" and 64 hexadecimal digits of its digest`: {Keys: []auth.APIKey{{User: "a", Hash: "secret-key"}}},
		"the key of b stands twice":                                                        {Keys: []auth.APIKey{{User: "a", Hash: auth.HashAPIKey("k")}, {User: "b", Hash: auth.HashAPIKey("k")}}},
		"want one place to look for it: a header, a query parameter or a cookie":           {Keys: []auth.APIKey{{User: "a", Hash: auth.HashAPIKey("k")}}, Place: auth.Place{Header: "A", Cookie: "b"}},
	} {
		if _, err := auth.NewAPIKeys(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAPIKeysOfAStoreAreAskedForOnceInAWhile(t *testing.T) {
	clock, asked := now, 0
	var trouble error
	texts := map[string]string{auth.HashAPIKey("k1"): `{"user":"acme","routes":["orders"]}`, auth.HashAPIKey("k2"): "nonsense"}
	v := must(auth.NewAPIKeys(auth.APIKeysOptions{Clock: func() time.Time { return clock }, Store: func(_ context.Context, hash string) (string, bool, error) {
		asked++
		text, ok := texts[hash]
		return text, ok, trouble
	}}))
	for range 3 {
		for key, want := range map[string]string{"k1": "api_key acme", "k3": "401 API key invalid"} {
			if got := outcome(v, request("/", "X-Api-Key: "+key)); got != want {
				t.Errorf("%s: %s", key, got)
			}
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	if got := outcome(v, request("/", "X-Api-Key: k2")); got != "503 temporarily unavailable" {
		t.Errorf("what is no key: %s", got)
	}
	trouble = errors.New("refused")
	clock = clock.Add(time.Hour)
	if got := outcome(v, request("/", "X-Api-Key: k1")); got != "503 temporarily unavailable" {
		t.Errorf("a store that is gone: %s", got)
	}
	if _, err := v.Verify(hasty{}, request("/", "X-Api-Key: k9")); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("too many wait: %v", err)
	}
}

func basic(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func TestPasswords(t *testing.T) {
	hash := string(must(bcrypt.GenerateFromPassword([]byte("hunter2"), bcrypt.MinCost)))
	users := "# users\ntom:" + hash + "\n" +
		"eve:$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$" + base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte("secret: with colons"), []byte("somesalt"), 1, 64, 1, 32)) + "\r\n"
	v := must(auth.NewBasic(auth.BasicOptions{Users: users, Realm: `a "b"`}))
	for name, test := range map[string]struct {
		line, want string
	}{
		"bcrypt":             {basic("tom", "hunter2"), "basic tom"},
		"argon2":             {basic("eve", "secret: with colons"), "basic eve"},
		"again":              {basic("tom", "hunter2"), "basic tom"},
		"scheme in any case": {"Authorization: bASIC   " + base64.StdEncoding.EncodeToString([]byte("tom:hunter2")), "basic tom"},
		"wrong":              {basic("tom", "hunter3"), "401 wrong user or password"},
		"another's":          {basic("eve", "hunter2"), "401 wrong user or password"},
		"nobody's":           {basic("bob", "hunter2"), "401 wrong user or password"},
		"the hash":           {basic("tom", hash), "401 wrong user or password"},
		"empty password":     {basic("tom", ""), "401 wrong user or password"},
		"empty user":         {basic("", "x"), "401 wrong user or password"},
		"no colon":           {"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("tom")), "401 wrong user or password"},
		"no base64":          {"Authorization: Basic !!!", "401 wrong user or password"},
		"no UTF-8":           {basic("tom", "\xff"), "401 wrong user or password"},
		"line break":         {basic("tom", "a\nb"), "401 wrong user or password"},
		"too long":           {basic("tom", strings.Repeat("p", 73)), "401 wrong user or password"},
		"bearer":             {"Authorization: Bearer x", "401 authentication required"},
		"none":               {"Accept: */*", "401 authentication required"},
	} {
		if got := outcome(v, request("/", test.line)); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
	if got := challenges(v, request("/")); !slices.Equal(got, []string{`Basic realm="a \"b\"", charset="UTF-8"`}) {
		t.Errorf("challenges %q", got)
	}
	if got := outcome(v, request("/", basic("tom", "hunter2"), "Authorization: Bearer x")); got != "401 wrong user or password" {
		t.Errorf("two Authorization lines: %s", got)
	}
	w := &patient{}
	if _, err := v.Verify(w, request("/", basic("tom", "hunter2"))); err != nil || w.waits.Load() != 0 {
		t.Errorf("a password that was right is hashed again: %v, %d", err, w.waits.Load())
	}
	for text, want := range map[string]string{
		"":                                      "no user: want lines of user:hash, as htpasswd -B makes them",
		"tom":                                   "line 1 is not user:hash",
		"tom:plain":                             "line 1: the hash of tom is neither bcrypt nor argon2: make one with `htpasswd -B`",
		"\ntom:$apr1$x$y":                       "line 2: the hash of tom is neither bcrypt nor argon2: make one with `htpasswd -B`",
		"tom:$2y$05$x":                          "line 1: the hash of tom is no bcrypt hash",
		"tom:$2y$31$" + strings.Repeat("a", 53): "line 1: the hash of tom has bcrypt cost 31: at most 14, which takes a second",
		"tom:$argon2id$v=19$m=99999999,t=1,p=1$c29tZXNhbHQ$" + strings.Repeat("A", 43): "line 1: the hash of tom costs more than is allowed: at most m=131072, t=10, p=16",
		"tom:$argon2id$v=16$m=64,t=1,p=1$c29tZXNhbHQ$" + strings.Repeat("A", 43):       "line 1: the hash of tom is no argon2 hash: want $argon2id$v=19$m=65536,t=3,p=4$salt$hash",
		"tom:" + hash + "\ntom:" + hash:                                                "line 2: tom stands twice",
	} {
		if _, err := auth.NewBasic(auth.BasicOptions{Users: text}); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// sign makes the Authorization line of a signed request as docs/auth/hmac.md tells clients to.
func sign(x *core.Exchange, app string, key []byte, at time.Time, nonce, body string, more ...string) string {
	scheme, mac, sum := "HMAC-SHA256", hmac.New(sha256.New, key), sha256.New()
	if len(key) >= 64 {
		scheme, mac, sum = "HMAC-SHA512", hmac.New(sha512.New, key), sha512.New()
	}
	sum.Write([]byte(body))
	r := &x.Request
	lines := []string{scheme, app, fmt.Sprint(at.Unix()), nonce, r.Method, strings.ToLower(string(r.Host)), string(r.RawPath), string(r.RawQuery)}
	headers := ""
	if len(more) > 0 {
		var names []string
		for _, name := range more {
			names = append(names, name)
			lines = append(lines, name+":"+string(r.Header.Get(name)))
		}
		headers = fmt.Sprintf(`, headers="%s"`, strings.Join(names, " "))
	}
	mac.Write([]byte(strings.Join(append(lines, hex.EncodeToString(sum.Sum(nil))), "\n")))
	return fmt.Sprintf(`%s key="%s", time="%d", nonce="%s"%s, signature="%s"`, scheme, app, at.Unix(), nonce, headers, base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

func TestSignedRequests(t *testing.T) {
	key, long := []byte(strings.Repeat("k", 32)), []byte(strings.Repeat("l", 64))
	clock := now
	v := must(auth.NewHMAC(auth.HMACOptions{Realm: "r", Clock: func() time.Time { return clock }, Apps: []auth.HMACApp{
		{ID: "billing", Secret: key}, {ID: "audit", Secret: long, SHA512: true}}}))
	n := 0
	try := func(name, want string, change func(x *core.Exchange, line string) string, app string, key []byte, at time.Time, body string, signed ...string) {
		t.Helper()
		n++
		x := request("/a%2Fb/c?x=1&y=%zz", "Content-Type: text/plain")
		if body != "" {
			withBody(x, body)
		}
		line := sign(x, app, key, at, fmt.Sprintf("nonce-%08d", n), body, signed...)
		if change != nil {
			line = change(x, line)
		}
		x.Request.Header.Add("Authorization", line)
		if got := outcome(v, x); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	try("good", "hmac billing", nil, "billing", key, now, "")
	try("good with a body", "hmac billing", nil, "billing", key, now, `{"a":1}`)
	try("good with a header", "hmac billing", nil, "billing", key, now, "x", "content-type")
	try("SHA-512", "hmac audit", nil, "audit", long, now, "x")
	try("another key", "401 signature invalid", nil, "billing", []byte(strings.Repeat("x", 32)), now, "")
	try("another application", "401 signature invalid", nil, "eve", key, now, "")
	try("another hash than the application's", "401 signature invalid", nil, "audit", key, now, "")
	replace := func(old, new string) func(*core.Exchange, string) string {
		return func(_ *core.Exchange, line string) string { return strings.Replace(line, old, new, 1) }
	}
	try("time changed", "401 signature invalid", replace(fmt.Sprint(now.Unix()), fmt.Sprint(now.Unix()+1)), "billing", key, now, "")
	try("nonce changed", "401 signature invalid", replace("nonce-", "nance-"), "billing", key, now, "")
	try("parameter twice", "401 signature invalid", replace(`nonce="`, `nonce="aaaaaaaa", nonce="`), "billing", key, now, "")
	try("parameter missing", "401 signature invalid", replace(`nonce="`, `nonse="`), "billing", key, now, "")
	try("a parameter more", "401 signature invalid", replace(`nonce="`, `more="1", nonce="`), "billing", key, now, "")
	try("short nonce", "401 signature invalid", func(x *core.Exchange, _ string) string { return sign(x, "billing", key, now, "n", "") }, "billing", key, now, "")
	try("header in capitals", "401 signature invalid", replace(`headers="content-type`, `headers="Content-Type`), "billing", key, now, "x", "content-type")
	for name, change := range map[string]func(r *core.Request){
		"method": func(r *core.Request) { r.Method = "PUT" },
		"path":   func(r *core.Request) { r.RawPath = []byte("/a%2fb/c") },
		"query":  func(r *core.Request) { r.RawQuery = []byte("x=2&y=%zz") },
		"host":   func(r *core.Request) { r.Host = []byte("other.example.com") },
		"header": func(r *core.Request) { r.Header.Set("Content-Type", "text/html") },
		"body":   func(r *core.Request) { r.Body.Replace([]byte("y")) },
	} {
		try(name+" changed", "401 signature invalid", func(x *core.Exchange, line string) string { change(&x.Request); return line }, "billing", key, now, "x", "content-type")
	}
	if got := outcome(v, request("/")); got != "401 signature required" {
		t.Errorf("none: %s", got)
	}
	if got := challenges(v, request("/")); !slices.Equal(got, []string{`HMAC-SHA256 realm="r"`, `HMAC-SHA512 realm="r"`}) {
		t.Errorf("challenges %q", got)
	}
	for _, line := range []string{"HMAC-SHA256", "HMAC-SHA256 x", `HMAC-SHA256 key="a`, `HMAC-SHA256 key=a,`, `HMAC-SHA256 key=a time=1`, "Basic x"} {
		if got := outcome(v, request("/", "Authorization: "+line)); got != "401 signature invalid" && got != "401 signature required" {
			t.Errorf("%s: %s", line, got)
		}
	}
	x := withBody(request("/"), strings.Repeat("b", 2<<10))
	x.Request.Header.Add("Authorization", sign(x, "billing", key, now, "nonce-large", strings.Repeat("b", 2<<10)))
	if _, err := v.Verify(&patient{}, x); !errors.Is(err, core.ErrBodyTooLarge) {
		t.Errorf("a body beyond the buffer: %v", err)
	}
	strict := must(auth.NewHMAC(auth.HMACOptions{Apps: []auth.HMACApp{{ID: "a", Secret: key}}, Signed: []string{"Content-Type"}, Clock: at(now)}))
	x = request("/", "Content-Type: a/b")
	x.Request.Header.Add("Authorization", sign(x, "a", key, now, "nonce-12", ""))
	if got := outcome(strict, x); got != "401 signature invalid" {
		t.Errorf("a header that must be signed is not: %s", got)
	}
}

// TestCanonicalRequestVectors are those of docs/auth/hmac.md.
func TestCanonicalRequestVectors(t *testing.T) {
	for _, vector := range []struct {
		app       auth.HMACApp
		line      string
		body      string
		signature string
	}{
		{auth.HMACApp{ID: "billing", Secret: []byte("0123456789abcdef0123456789abcdef")},
			`HMAC-SHA256 key="billing", time="1700000000", nonce="b2RkLW5vbmNl", signature="%s"`, "", "HQ9DvefCt0VzoCbQcrzY6F3bYnNLJa0erUqGNqTKHwI="},
		{auth.HMACApp{ID: "billing", Secret: []byte("0123456789abcdef0123456789abcdef")},
			`HMAC-SHA256 key="billing", time="1700000000", nonce="b2RkLW5vbmNm", headers="content-type", signature="%s"`, `{"item":1}`, "MPWN1G4TkTNiSGKDv5G+bfhZ51ilwAVO9luFSKROUhY="},
		{auth.HMACApp{ID: "audit", Secret: []byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"), SHA512: true},
			`HMAC-SHA512 key="audit", time="1700000000", nonce="b2RkLW5vbmNl", signature="%s"`, "", "MmNqRFlLcOrq9ZJbak54tq9pua3LE4+0XouVsLY7hQd2M3XWUYG+Alg2w+rtGxnjCM48piq5NbAozVQxxf+9aw=="},
	} {
		v := must(auth.NewHMAC(auth.HMACOptions{Apps: []auth.HMACApp{vector.app}, Clock: at(now)}))
		x := request("/orders/7?full=true", "Content-Type: application/json", "Authorization: "+fmt.Sprintf(vector.line, vector.signature))
		x.Request.Host = []byte("api.example.com")
		if vector.body != "" {
			withBody(x, vector.body)
		}
		if got := outcome(v, x); got != "hmac "+vector.app.ID {
			t.Errorf("%s: %s", vector.line, got)
		}
	}
}

func TestWindowAndNonces(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	clock := now
	v := must(auth.NewHMAC(auth.HMACOptions{Apps: []auth.HMACApp{{ID: "a", Secret: key}}, Clock: func() time.Time { return clock }}))
	n := 0
	send := func(off time.Duration, nonce string) string {
		n++
		if nonce == "" {
			nonce = fmt.Sprintf("nonce-%08d", n)
		}
		x := request("/")
		x.Request.Header.Add("Authorization", sign(x, "a", key, clock.Add(off), nonce, ""))
		return outcome(v, x)
	}
	for off, want := range map[time.Duration]string{
		300 * time.Second: "hmac a", -300 * time.Second: "hmac a", 0: "hmac a",
	} {
		fresh := must(auth.NewHMAC(auth.HMACOptions{Apps: []auth.HMACApp{{ID: "a", Secret: key}}, Clock: func() time.Time { return clock }}))
		v = fresh
		if got := send(off, ""); got != want {
			t.Errorf("%s off: %s", off, got)
		}
		if got := send(301*time.Second, ""); got != "401 signature expired" {
			t.Errorf("301 s ahead: %s", got)
		}
	}
	v = must(auth.NewHMAC(auth.HMACOptions{Apps: []auth.HMACApp{{ID: "a", Secret: key}}, Clock: func() time.Time { return clock }}))
	// Nine differences of 0 s and one of 100 s: a deviation of 30 s, so that 390 s pass and 391 s do not.
	for range 9 {
		send(0, "")
	}
	send(100*time.Second, "")
	if got := send(-391*time.Second, ""); got != "401 signature expired" {
		t.Errorf("391 s: %s", got)
	}
	if got := send(-390*time.Second, ""); got != "hmac a" {
		t.Errorf("390 s: %s", got)
	}
	for i := range 20 { // the widest window
		send(time.Duration(300-600*(i%2))*time.Second, "")
	}
	if got := send(600*time.Second, ""); got != "hmac a" {
		t.Errorf("600 s: %s", got)
	}
	if got := send(601*time.Second, ""); got != "401 signature expired" {
		t.Errorf("601 s: %s", got)
	}
	if got := send(0, "one-nonce"); got != "hmac a" {
		t.Error(got)
	}
	if got := send(0, "one-nonce"); got != "401 signature invalid" {
		t.Errorf("a nonce twice: %s", got)
	}
	ahead := clock.Add(590 * time.Second)
	x := request("/")
	x.Request.Header.Add("Authorization", sign(x, "a", key, ahead, "late-nonce", ""))
	if got := outcome(v, x); got != "hmac a" {
		t.Error(got)
	}
	for range 1180 / 20 {
		clock = clock.Add(20 * time.Second)
		if got := outcome(v, x); got == "hmac a" {
			t.Fatalf("a nonce was taken twice, %s later", clock.Sub(now))
		}
	}
}

func TestNoncesAreNeverForgottenEarly(t *testing.T) {
	clock := now
	store := auth.NewNonces(3, func() time.Time { return clock })
	use := func(nonce string) string {
		fresh, err := store.Use(nil, "a", nonce, time.Minute)
		return fmt.Sprint(fresh, err != nil)
	}
	for i, want := range []string{"true false", "true false", "true false", "false true"} {
		if got := use(fmt.Sprint(i)); got != want {
			t.Errorf("%d: %s", i, got)
		}
	}
	if got := use("0"); got != "false false" {
		t.Errorf("a full store forgets: %s", got)
	}
	clock = clock.Add(3 * time.Minute)
	if got := use("0"); got != "true false" {
		t.Errorf("after its time: %s", got)
	}
}

func TestClientCertificates(t *testing.T) {
	with := func(subject string, sans ...string) *core.Exchange {
		x := request("/")
		x.Request.TLS = &core.TLSInfo{ClientSubject: subject, ClientSANs: sans, ClientFingerprint: fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, subject, sans)))}
		return x
	}
	any := must(auth.NewCertificate(auth.CertificateOptions{}))
	san := must(auth.NewCertificate(auth.CertificateOptions{User: "san"}))
	some := must(auth.NewCertificate(auth.CertificateOptions{Allow: map[string]string{"cn=robot, o=Example": "r2", "spiffe://example.com/a": ""}}))
	plain := request("/")
	plain.Request.TLS = &core.TLSInfo{}
	for name, test := range map[string]struct {
		v    auth.Verifier
		x    *core.Exchange
		want string
	}{
		"plain HTTP":         {any, request("/"), "401 client certificate required"},
		"no certificate":     {any, plain, "401 client certificate required"},
		"common name":        {any, with("CN=tom,OU=dev,O=Example"), "certificate tom"},
		"escapes":            {any, with(`CN=tom\, the cat,O=Example`), "certificate tom, the cat"},
		"no common name":     {any, with("O=Example"), "401 client certificate invalid"},
		"alternative name":   {san, with("CN=tom", "spiffe://example.com/tom"), "certificate spiffe://example.com/tom"},
		"none":               {san, with("CN=tom"), "401 client certificate invalid"},
		"allowed by subject": {some, with("CN=robot,O=Example"), "certificate r2"},
		"allowed by name":    {some, with("CN=x", "spiffe://example.com/a"), "certificate x"},
		"not allowed":        {some, with("CN=robot,O=Other"), "403 not allowed"},
		"a name in the name": {some, with(`CN=robot\,O\=Example`), "403 not allowed"},
	} {
		for range 2 {
			if got := outcome(test.v, test.x); got != test.want {
				t.Errorf("%s: got %s, want %s", name, got, test.want)
			}
		}
	}
	who, err := any.Verify(&patient{}, with("CN=tom,OU=dev,O=Example", "a.example.com"))
	if err != nil {
		t.Fatal(err)
	}
	if ou, _ := who.Claims.Get("ou"); ou.Text() != "dev" {
		t.Errorf("ou is %q", ou.Text())
	}
	if _, err := auth.NewCertificate(auth.CertificateOptions{User: "serial"}); err == nil {
		t.Error("a part that there is not was accepted")
	}
}

func TestNetworks(t *testing.T) {
	v := must(auth.NewNetworkVerifier([]auth.Network{
		{User: "office", Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, {User: "all", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	}, []netip.Prefix{netip.MustParsePrefix("192.0.2.66/32")}))
	for address, want := range map[string]string{"192.0.2.7": "network office", "10.1.1.1": "network all", "192.0.2.66": "403 not from here", "198.51.100.1": "403 not from here"} {
		x := request("/")
		x.Request.ClientIP = netip.MustParseAddr(address)
		if got := outcome(v, x); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
	x := request("/")
	x.Request.ClientIP = netip.Addr{}
	if got := outcome(v, x); got != "403 not from here" {
		t.Errorf("no address: %s", got)
	}
}
