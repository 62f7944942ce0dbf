package auth_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
)

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
