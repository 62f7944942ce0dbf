package luaapi_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
)

// over runs Lua for a request whose connection told info, and gives the error.
func over(t *testing.T, info *core.TLSInfo, body string) error {
	t.Helper()
	b := bench(t, "", onRequest(body))
	x := new(core.Exchange)
	x.Route, x.Request.TLS = b.Route("all"), info
	for _, s := range b.Pipeline.Stages(x.Route) {
		if _, err := s.Request(x); err != nil {
			return err
		}
	}
	return nil
}

func TestTheTLSConnectionIsTold(t *testing.T) {
	full := &core.TLSInfo{Version: "TLS 1.3", Cipher: "TLS_AES_128_GCM_SHA256", ServerName: "a.test", ClientSubject: "CN=tom",
		ClientSANs: []string{"tom.test", "10.0.0.1"}, ClientFingerprint: "ab12", ClientName: "tom", ClientOrgs: []string{"A", "B"}, ClientURIs: []string{"spiffe://x"}}
	for body, info := range map[string]*core.TLSInfo{
		`assert(req.tls.version == "TLS 1.3" and req.tls.cipher == "TLS_AES_128_GCM_SHA256" and req.tls.server_name == "a.test")
		assert(req.tls.subject == "CN=tom" and req.tls.fingerprint == "ab12")
		assert(req.tls.common_name == "tom" and req.tls.organizations[2] == "B" and req.tls.uris[1] == "spiffe://x")
		assert(#req.tls.sans == 2 and req.tls.sans[1] == "tom.test" and req.tls.sans[2] == "10.0.0.1")`: full,
		`assert(req.tls and req.tls.server_name == nil and req.tls.subject == nil and req.tls.fingerprint == nil and #req.tls.sans == 0)`: {Version: "TLS 1.2"},
		`assert(req.tls == nil)`: nil,
	} {
		if err := over(t, info, body); err != nil {
			t.Errorf("%v\n%s", err, body)
		}
	}
	for body, want := range map[string]string{
		`local x = req.tls.issuer`: `req.tls has no "issuer": it has version, cipher, server_name, subject, common_name, organizations, sans, uris, fingerprint`,
		`req.tls.subject = "x"`:    "filter.lua:3: ",
		`req.tls = nil`:            "req.tls",
	} {
		if err := over(t, full, body); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
