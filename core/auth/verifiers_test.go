package auth_test

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"
	"testing"

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
