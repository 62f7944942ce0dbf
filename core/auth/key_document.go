package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// load gets the set and tells how long it is good for.
func (s *KeySource) load(ctx context.Context) (*keySet, time.Duration, error) {
	url := s.o.URL
	if url == "" {
		var err error
		if url, err = discover(ctx, s.o.Fetch, s.o.Issuer); err != nil {
			return nil, 0, err
		}
	}
	doc, err := s.o.Fetch(ctx, url)
	if err != nil {
		return nil, 0, err
	}
	set, faults, err := parseKeySet(doc.Body, s.o.Algorithm, false)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range faults {
		s.o.Log.Warn("key not used", "url", s.Name(), "error", f.String())
	}
	age := s.o.Refresh
	if doc.MaxAge > 0 {
		age = min(age, max(doc.MaxAge, s.o.Cooldown))
	}
	return set, age, nil
}

// discover finds an OpenID provider's key set. What the document says of itself must be what it was asked for (section 4.3).
func discover(ctx context.Context, fetch Fetcher, issuer string) (url string, err error) {
	doc, err := fetch(ctx, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return "", fmt.Errorf("discovery: %w", err)
	}
	fields, err := parseMap(string(doc.Body))
	if err != nil {
		return "", fmt.Errorf("discovery: %w", err)
	}
	if named, _ := fields.Get("issuer"); named.Text() != issuer {
		return "", fmt.Errorf("discovery: the document is of issuer %q", shorten(named.Text()))
	}
	uri, _ := fields.Get("jwks_uri")
	if err := checkURL(uri.Text()); err != nil {
		return "", fmt.Errorf("discovery: jwks_uri: %w", err)
	}
	if strings.HasPrefix(issuer, "https:") && !strings.HasPrefix(uri.Text(), "https:") {
		return "", errors.New("discovery: jwks_uri is not https")
	}
	return uri.Text(), nil
}

// shorten keeps what others wrote to a short text for the log.
func shorten(text string) string {
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "..."
	}
	return text
}
