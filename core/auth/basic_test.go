package auth_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"github.com/moongate/moongate/core/auth"
)

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
