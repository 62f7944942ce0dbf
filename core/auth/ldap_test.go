package auth_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/core/auth/ldaptest"
)

func directory(t *testing.T) *ldaptest.Server {
	t.Helper()
	person := func(uid, password string, groups ...string) ldaptest.Entry {
		return ldaptest.Entry{DN: "uid=" + uid + ",ou=people,dc=example,dc=com", Password: password,
			Attributes: map[string][]string{"uid": {uid}, "objectClass": {"person"}, "memberOf": groups, "mail": {uid + "@example.com"}}}
	}
	s := &ldaptest.Server{Entries: []ldaptest.Entry{
		{DN: "cn=gateway,dc=example,dc=com", Password: "of the gateway"},
		person("tom", "hunter2", "cn=ops", "cn=dev"), person("eve", "secret", "cn=dev"), person("twin", "x"), {DN: "uid=twin,ou=people,ou=old,dc=example,dc=com", Attributes: map[string][]string{"uid": {"twin"}, "objectClass": {"person"}}},
	}}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestDirectories(t *testing.T) {
	s := directory(t)
	direct := must(auth.NewLDAP(auth.LDAPOptions{URL: s.URL(), UserDN: "uid=%s,ou=people,dc=example,dc=com"}))
	sought := must(auth.NewLDAP(auth.LDAPOptions{URL: s.URL(), BindDN: "cn=gateway,dc=example,dc=com", BindPassword: "of the gateway", Base: "dc=example,dc=com",
		Filter: "(&(objectClass=person)(uid=%s))", Attributes: []string{"memberOf", "mail"}, Rules: []auth.Rule{{Claim: "memberof", Contains: []string{"cn=ops"}}}}))
	wrong := must(auth.NewLDAP(auth.LDAPOptions{URL: s.URL(), BindDN: "cn=gateway,dc=example,dc=com", BindPassword: "another", Base: "dc=example,dc=com", Filter: "(uid=%s)"}))
	for name, test := range map[string]struct {
		v    auth.Verifier
		line string
		want string
	}{
		"bind":                       {direct, basic("tom", "hunter2"), "ldap tom"},
		"wrong password":             {direct, basic("tom", "hunter3"), "401 wrong user or password"},
		"empty password":             {direct, basic("tom", ""), "401 wrong user or password"},
		"nobody":                     {direct, basic("bob", "x"), "401 wrong user or password"},
		"a name that is a name":      {direct, basic("tom,ou=people,dc=example,dc=com+uid=x", "hunter2"), "401 wrong user or password"},
		"none":                       {direct, "Accept: */*", "401 authentication required"},
		"sought":                     {sought, basic("tom", "hunter2"), "ldap tom"},
		"sought, wrong password":     {sought, basic("tom", "secret"), "401 wrong user or password"},
		"sought, in no group":        {sought, basic("eve", "secret"), "403 not allowed"},
		"sought, nobody":             {sought, basic("bob", "x"), "401 wrong user or password"},
		"sought, two of them":        {sought, basic("twin", "x"), "401 wrong user or password"},
		"everybody by a filter":      {sought, basic("*", "hunter2"), "401 wrong user or password"},
		"a filter in the filter":     {sought, basic("tom)(uid=*", "hunter2"), "401 wrong user or password"},
		"the gateway's own is wrong": {wrong, basic("tom", "hunter2"), "503 temporarily unavailable"},
	} {
		if got := outcome(test.v, request("/", test.line)); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
	who, err := sought.Verify(&patient{}, request("/", basic("tom", "hunter2")))
	if err != nil {
		t.Fatal(err)
	}
	groups, _ := who.Claims.Get("memberof")
	if dn, _ := who.Claims.Get("dn"); groups.Len() != 2 || dn.Text() != "uid=tom,ou=people,dc=example,dc=com" {
		t.Errorf("%d groups, dn %q", groups.Len(), dn.Text())
	}
	before := s.Binds.Load()
	for range 3 {
		if got := outcome(direct, request("/", basic("tom", "hunter2"))); got != "ldap tom" {
			t.Error(got)
		}
	}
	if n := s.Binds.Load() - before; n != 0 {
		t.Errorf("%d binds for a password that was right", n)
	}
}

func TestDirectoryThatIsGone(t *testing.T) {
	s := directory(t)
	v := must(auth.NewLDAP(auth.LDAPOptions{URL: s.URL(), UserDN: "uid=%s,ou=people,dc=example,dc=com", Timeout: time.Second}))
	s.Close()
	if got := outcome(v, request("/", basic("tom", "hunter2"))); got != "503 temporarily unavailable" {
		t.Error(got)
	}
	if _, err := v.Verify(hasty{}, request("/", basic("eve", "x"))); !errors.Is(err, auth.ErrUnavailable) {
		t.Error(err)
	}
}

func TestImpossibleDirectoriesAreRefused(t *testing.T) {
	const url, dn = "ldap://127.0.0.1", "uid=%s,dc=x"
	for want, o := range map[string]auth.LDAPOptions{
		"url is none of a directory":       {URL: "http://x", UserDN: dn},
		"start_tls does not go with ldaps": {URL: "ldaps://x", StartTLS: true, UserDN: dn},
		"want either user_dn":              {URL: url},
		"user_dn has not one %s":           {URL: url, UserDN: "uid=tom"},
		"filter has no %s":                 {URL: url, Base: "dc=x", Filter: "(uid=tom)"},
		"filter is none of LDAP's":         {URL: url, Base: "dc=x", Filter: "(uid=%s"},
		"bind_dn has no bind_password":     {URL: url, Base: "dc=x", Filter: "(uid=%s)", BindDN: "cn=x"},
		"ca has no PEM certificate":        {URL: url, UserDN: dn, CA: []byte("x")},
	} {
		if _, err := auth.NewLDAP(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
