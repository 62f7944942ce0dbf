package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxDocument is the most that is read of what another service answers.
const maxDocument = 1 << 20

// Document is what stands at a URL.
type Document struct {
	Body   []byte
	MaxAge time.Duration // of Cache-Control; 0 when it says nothing
}

// Fetcher gets a document. An answer other than 200 is an error. It is safe for concurrent use.
type Fetcher func(ctx context.Context, url string) (Document, error)

// ClientOptions say how other services are asked.
type ClientOptions struct {
	// CA holds PEM certificates of authorities that are believed in place of the system's.
	CA []byte
	// Idle is how many connections are kept for the next question; 0: none.
	Idle int
}

// NewClient makes a client for questions to other services. It goes through the proxies of the environment ($HTTPS_PROXY and the like),
// keeps no cookies, and follows a redirection never.
func NewClient(o ClientOptions) (*http.Client, error) {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSHandshakeTimeout: DefaultTimeout,
		MaxIdleConnsPerHost: max(o.Idle, 1),
		MaxConnsPerHost:     maxConnections,
		IdleConnTimeout:     30 * time.Second,
		DisableKeepAlives:   o.Idle == 0,
		ForceAttemptHTTP2:   true,
	}
	if o.CA != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("ca has no PEM certificate in it")
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// maxConnections bounds the connections to one service that is asked.
const maxConnections = 256

// NewFetcher makes a fetcher over a client. It follows up to three redirections, and none from https to http.
func NewFetcher(client *http.Client) Fetcher {
	following := *client
	following.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > 3:
			return errors.New("more than three redirections")
		case via[0].URL.Scheme == "https" && r.URL.Scheme != "https":
			return errors.New("a redirection from https to http")
		}
		return nil
	}
	return func(ctx context.Context, address string) (Document, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return Document{}, err
		}
		r.Header.Set("Accept", "application/json, application/jwk-set+json")
		r.Header.Set("User-Agent", userAgent)
		answer, err := following.Do(r)
		if err != nil {
			return Document{}, err
		}
		defer answer.Body.Close()
		body, err := readAll(answer)
		if err != nil {
			return Document{}, err
		}
		if answer.StatusCode != http.StatusOK {
			return Document{}, fmt.Errorf("%s answered %d", address, answer.StatusCode)
		}
		return Document{Body: body, MaxAge: maxAge(answer.Header.Get("Cache-Control"))}, nil
	}
}

const userAgent = "moongate"

func readAll(answer *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxDocument {
		return nil, errors.New("an answer of more than 1 MiB")
	}
	return body, nil
}

// maxAge reads Cache-Control (RFC 9111, section 5.2.2.1).
func maxAge(header string) time.Duration {
	for _, part := range strings.Split(header, ",") {
		if text, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(part)), "max-age="); ok {
			if n, err := strconv.ParseUint(strings.Trim(text, `"`), 10, 31); err == nil {
				return time.Duration(n) * time.Second
			}
		}
	}
	return 0
}

// checkURL wants an address that can be asked.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is no URL: write https://host/path", shorten(redact(text)))
	case u.User != nil:
		return errors.New("a URL with a password in it: credentials have settings of their own")
	case u.Fragment != "":
		return errors.New("a URL with a fragment, which is never sent")
	}
	return nil
}

// redact takes what may be a password out of a URL.
func redact(text string) string {
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		return "..." + text[i:]
	}
	return text
}
