package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-ldap/ldap/v3"

	"github.com/moongate/moongate/core"
)

// Which part of a client's certificate names the caller.
const (
	CertificateCN          = "cn"          // common name of the subject
	CertificateSubject     = "subject"     // whole subject (RFC 2253)
	CertificateSAN         = "san"         // first alternative name
	CertificateFingerprint = "fingerprint" // SHA-256 in hexadecimal digits
)

// CertificateOptions say which certificates are accepted. The listener has verified them all.
type CertificateOptions struct {
	// User is the part that names the caller; "" is CertificateCN.
	User string
	// Allow maps whole subjects, alternative names or fingerprints to callers; "" as a caller keeps the name that User tells. Empty: every
	// certificate is accepted.
	Allow map[string]string
}

// Certificate is a verifier of clients' TLS certificates. It is safe for concurrent use.
type Certificate struct {
	o     CertificateOptions
	allow map[string]string

	mu    sync.RWMutex
	known map[string]*Identity // by fingerprint
}

// NewCertificate makes a verifier.
func NewCertificate(o CertificateOptions) (*Certificate, error) {
	switch o.User {
	case "":
		o.User = CertificateCN
	case CertificateCN, CertificateSubject, CertificateSAN, CertificateFingerprint:
	default:
		return nil, fmt.Errorf("%q is no part of a certificate: want cn, subject, san or fingerprint", shorten(o.User))
	}
	v := &Certificate{o: o, allow: map[string]string{}, known: map[string]*Identity{}}
	for key, user := range o.Allow {
		if key == "" || user != "" && !isUser(user) {
			return nil, errors.New("a certificate is allowed by its subject, alternative name or fingerprint, and names who can stand in a header")
		}
		v.allow[canonicalName(key)] = user
	}
	return v, nil
}

// Verify implements Verifier. There is no challenge: what is missing is shown in the TLS handshake.
func (v *Certificate) Verify(_ Waiter, x *core.Exchange) (*Identity, error) {
	info := x.Request.TLS
	if info == nil || info.ClientFingerprint == "" {
		return nil, &Refusal{kind: ErrMissing, reason: "no client certificate", message: "client certificate required"}
	}
	v.mu.RLock()
	identity := v.known[info.ClientFingerprint]
	v.mu.RUnlock()
	if identity != nil {
		return identity, nil
	}
	identity, err := v.identify(info)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= DefaultCache {
		clear(v.known)
	}
	v.known[info.ClientFingerprint] = identity
	return identity, nil
}

func (v *Certificate) identify(info *core.TLSInfo) (*Identity, error) {
	subject, err := ldap.ParseDN(info.ClientSubject)
	if err != nil {
		return nil, &Refusal{kind: ErrInvalid, reason: "the certificate's subject is no name: " + err.Error(), message: "client certificate invalid"}
	}
	user := ""
	switch v.o.User {
	case CertificateCN:
		user = attribute(subject, "CN")
	case CertificateSubject:
		user = info.ClientSubject
	case CertificateFingerprint:
		user = info.ClientFingerprint
	case CertificateSAN:
		if len(info.ClientSANs) > 0 {
			user = info.ClientSANs[0]
		}
	}
	if len(v.allow) > 0 {
		given, ok := v.allowed(info)
		if !ok {
			return nil, &Refusal{kind: ErrForbidden, reason: "the certificate of " + info.ClientSubject + " is not among those that are allowed"}
		}
		if given != "" {
			user = given
		}
	}
	if !isUser(user) {
		return nil, &Refusal{kind: ErrInvalid, reason: "the certificate has no " + v.o.User + " that can name the caller", message: "client certificate invalid"}
	}
	claims := textMap("subject", info.ClientSubject, "cn", attribute(subject, "CN"), "o", attribute(subject, "O"), "ou", attribute(subject, "OU"),
		"fingerprint", info.ClientFingerprint).with("sans", textList(info.ClientSANs))
	return &Identity{User: user, Kind: "certificate", Claims: claims}, nil
}

func (v *Certificate) allowed(info *core.TLSInfo) (user string, ok bool) {
	for _, key := range append([]string{info.ClientSubject, info.ClientFingerprint}, info.ClientSANs...) {
		if user, ok = v.allow[canonicalName(key)]; ok {
			return user, true
		}
	}
	return "", false
}

// canonicalName writes a subject in one way (RFC 4514), so that spaces and the case of names do not matter; what is none stays as it is.
func canonicalName(text string) string {
	if !strings.Contains(text, "=") {
		return strings.ToLower(text)
	}
	name, err := ldap.ParseDN(text)
	if err != nil {
		return text
	}
	return name.String()
}

// attribute is the first attribute of that type in a name, "" when there is none.
func attribute(name *ldap.DN, kind string) string {
	for _, rdn := range slices.Backward(name.RDNs) {
		for _, a := range rdn.Attributes {
			if strings.EqualFold(a.Type, kind) {
				return a.Value
			}
		}
	}
	return ""
}
