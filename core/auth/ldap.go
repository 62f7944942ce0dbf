package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/moongate/moongate/core"
)

// LDAPOptions say which directory knows the callers' passwords. Callers bind by UserDN, or are sought by Base and Filter.
type LDAPOptions struct {
	// URL is ldap://host or ldaps://host, with or without a port.
	URL string
	// StartTLS asks for TLS on a connection of ldap://.
	StartTLS bool
	// CA holds PEM certificates of authorities in place of the system's.
	CA []byte
	// UserDN is the name that a caller binds with; %s in it is the user.
	UserDN string
	// BindDN and BindPassword are the gateway's own, to seek with; "" seeks without a name.
	BindDN, BindPassword string
	// Base and Filter find the caller's entry; %s in the filter is the user. Exactly one entry must be found.
	Base, Filter string
	// Attributes of the entry become claims, as lists; their names in lower case.
	Attributes []string
	// Rules are conditions on the claims, such as membership in a group.
	Rules []Rule
	Realm string
	// Keep is how long a password that was right is remembered, by its digest under a random key: 0 for DefaultKeep, below 0 not at all.
	Keep time.Duration
	// Timeout bounds one login; 0 is DefaultTimeout.
	Timeout time.Duration
	Clock   func() time.Time
}

// LDAP is a verifier of passwords that a directory knows (RFC 4511, section 4.2). It is safe for concurrent use.
type LDAP struct {
	o         LDAPOptions
	tls       *tls.Config
	memo      *memo
	digest    *digester
	gate      chan struct{}
	challenge challenge
}

// maxLogins is how many connections to a directory there are at once.
const maxLogins = 32

// NewLDAP makes a verifier. Nothing is connected yet.
func NewLDAP(o LDAPOptions) (*LDAP, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "ldap" && u.Scheme != "ldaps" || u.User != nil:
		return nil, errors.New("url is none of a directory: write ldaps://host or ldap://host")
	case o.StartTLS && u.Scheme == "ldaps":
		return nil, errors.New("start_tls does not go with ldaps, which is TLS already")
	case (o.UserDN == "") == (o.Filter == ""):
		return nil, errors.New("want either user_dn, to bind with, or base and filter, to seek by")
	case o.UserDN != "" && strings.Count(o.UserDN, "%s") != 1:
		return nil, errors.New("user_dn has not one %s, where the user stands")
	case o.Filter != "" && strings.Count(o.Filter, "%s") == 0:
		return nil, errors.New("filter has no %s, where the user stands")
	case o.BindDN != "" && o.BindPassword == "":
		return nil, errors.New("bind_dn has no bind_password: a bind without one proves nothing")
	}
	if o.Filter != "" {
		if _, err := ldap.CompileFilter(strings.ReplaceAll(o.Filter, "%s", "user")); err != nil {
			return nil, fmt.Errorf("filter is none of LDAP's: %w", err)
		}
	}
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	v := &LDAP{o: o, tls: &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}, memo: newMemo(DefaultCache, o.Timeout, o.Clock),
		digest: newDigester(), gate: make(chan struct{}, maxLogins), challenge: challenge{"Basic", o.Realm, `charset="UTF-8"`}}
	if o.CA != nil {
		v.tls.RootCAs = x509.NewCertPool()
		if !v.tls.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("ca has no PEM certificate in it")
		}
	}
	return v, nil
}

// Verify implements Verifier.
func (v *LDAP) Verify(w Waiter, x *core.Exchange) (*Identity, error) {
	user, password, err := passwordOf(&x.Request)
	if err != nil {
		return nil, refusePassword(v.challenge, err)
	}
	found, err := v.memo.find(w, v.digest.of(user, password), func(ctx context.Context) outcome { return v.login(ctx, string(user), string(password)) })
	if err != nil {
		return nil, refusePassword(v.challenge, err)
	}
	return found.identity, nil
}

// login asks the directory.
func (v *LDAP) login(ctx context.Context, user, password string) outcome {
	select {
	case v.gate <- struct{}{}:
		defer func() { <-v.gate }()
	case <-ctx.Done():
		return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: "too many logins at once"}}
	}
	identity, err := v.bind(ctx, user, password)
	if err == nil {
		if refusal := checkRules(v.o.Rules, identity.Claims); refusal != nil {
			return outcome{refusal: refusal}
		}
		return outcome{identity: identity, until: v.memo.clock().Add(v.o.Keep)}
	}
	if ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultNoSuchObject, ldap.LDAPResultInvalidDNSyntax) || errors.Is(err, errNobody) {
		return outcome{refusal: &Refusal{kind: ErrInvalid, reason: "directory: " + err.Error()}}
	}
	return outcome{refusal: &Refusal{kind: ErrUnavailable, reason: "directory: " + err.Error()}}
}

var errNobody = errors.New("not one entry of that user")

func (v *LDAP) bind(ctx context.Context, user, password string) (*Identity, error) {
	c, err := v.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	identity := &Identity{User: user, Kind: "ldap"}
	dn := strings.ReplaceAll(v.o.UserDN, "%s", ldap.EscapeDN(user))
	if v.o.Filter != "" {
		entry, err := v.seek(c, user)
		if err != nil {
			return nil, err
		}
		dn = entry.DN
		identity.Claims = v.claims(entry)
	}
	if err := c.Bind(dn, password); err != nil {
		return nil, err
	}
	if v.o.Filter == "" && len(v.o.Attributes) > 0 {
		entry, err := v.read(c, dn)
		if err != nil {
			return nil, err
		}
		identity.Claims = v.claims(entry)
	}
	return identity, nil
}

func (v *LDAP) connect(ctx context.Context) (*ldap.Conn, error) {
	dialer := &net.Dialer{}
	if deadline, ok := ctx.Deadline(); ok {
		dialer.Deadline = deadline
	}
	c, err := ldap.DialURL(v.o.URL, ldap.DialWithDialer(dialer), ldap.DialWithTLSConfig(v.tls.Clone()))
	if err != nil {
		return nil, err
	}
	c.SetTimeout(v.o.Timeout)
	if v.o.StartTLS {
		if err := c.StartTLS(v.tls.Clone()); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// seek finds the one entry of a user.
func (v *LDAP) seek(c *ldap.Conn, user string) (*ldap.Entry, error) {
	if v.o.BindDN != "" {
		if err := c.Bind(v.o.BindDN, v.o.BindPassword); err != nil {
			return nil, fmt.Errorf("the gateway's own bind: %s", err) // without its code: it is not the caller's fault
		}
	}
	filter := strings.ReplaceAll(v.o.Filter, "%s", ldap.EscapeFilter(user))
	return v.one(c, ldap.NewSearchRequest(v.o.Base, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, 2, int(v.o.Timeout.Seconds())+1, false, filter, v.wanted(), nil))
}

// read gives the attributes of the entry that has bound.
func (v *LDAP) read(c *ldap.Conn, dn string) (*ldap.Entry, error) {
	return v.one(c, ldap.NewSearchRequest(dn, ldap.ScopeBaseObject, ldap.NeverDerefAliases, 2, int(v.o.Timeout.Seconds())+1, false, "(objectClass=*)", v.wanted(), nil))
}

func (v *LDAP) wanted() []string {
	if len(v.o.Attributes) == 0 {
		return []string{"1.1"} // none (RFC 4511, section 4.5.1.8)
	}
	return v.o.Attributes
}

func (v *LDAP) one(c *ldap.Conn, r *ldap.SearchRequest) (*ldap.Entry, error) {
	found, err := c.Search(r)
	if ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded) || err == nil && len(found.Entries) != 1 {
		return nil, errNobody
	}
	if err != nil {
		return nil, err
	}
	return found.Entries[0], nil
}

func (v *LDAP) claims(entry *ldap.Entry) Value {
	claims := textMap("dn", entry.DN)
	for _, name := range v.o.Attributes {
		claims = claims.with(strings.ToLower(name), textList(entry.GetEqualFoldAttributeValues(name)))
	}
	return claims
}
