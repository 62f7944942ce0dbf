package gateway

import (
	"errors"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/upstream"
)

func upstreamTLS(t *conf.UpstreamTLS) upstream.TLSOptions {
	return upstream.TLSOptions{CA: []byte(t.CA.Text), Cert: []byte(t.Cert.Text), Key: []byte(t.Key.Text), ServerName: t.ServerName, Insecure: t.Insecure}
}

// upstreamError notes why an upstream cannot be, at the place that says so.
func upstreamError(u *conf.Upstream, err error, errs *conf.Errors) {
	key := "upstream." + u.Name
	if fault, ok := errors.AsType[*upstream.TLSError](err); ok {
		f := u.TLS.CA
		if fault.Option == "cert" {
			f = u.TLS.Cert
		}
		errs.Add(f.Pos, key+".tls."+fault.Option, "%s: %s", f.Path, fault.Err)
		return
	}
	errs.Add(u.Pos, key, "%s", err)
}
