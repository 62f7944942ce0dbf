// provider is an OpenID provider for the end-to-end tests: github.com/zitadel/oidc (Apache 2.0), with its store in memory, and keys that
// can be rotated. It is a module of its own, so that the gateway's has nothing to do with what it needs.
//
// It prints its issuer and serves until it is ended. Tokens come by the grant of client credentials: the client "tokens" gets JWTs, "opaque"
// gets tokens to ask about; the secret is "verysecret", the subject "id1", the audience "api", whose client may introspect with "secret".
// POST /rotate signs with a new key from then on; POST /forget publishes the newest alone.
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	issuer := "http://" + listener.Addr().String()
	storage.RegisterClients(storage.WebClient("api", "secret"))
	s := &store{Storage: storage.NewStorage(storage.NewUserStore(issuer))}
	s.rotate()
	mux := http.NewServeMux()
	mux.Handle("/", exampleop.SetupServer(issuer, s, nil, false, op.WithAllowInsecure()))
	mux.HandleFunc("POST /rotate", func(http.ResponseWriter, *http.Request) { s.rotate() })
	mux.HandleFunc("POST /forget", func(http.ResponseWriter, *http.Request) { s.forget() })
	fmt.Println(issuer)
	log.Fatal(http.Serve(listener, mux))
}

// store is the library's own, with keys and clients of ours.
type store struct {
	*storage.Storage

	mu   sync.Mutex
	keys []key // the newest last
	made int
}

// key is a private key, which signs, and which is published without its secret.
type key struct {
	id      string
	private *rsa.PrivateKey
}

func (k key) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k key) Key() any                                    { return k.private }
func (k key) ID() string                                  { return k.id }

type published struct{ key }

func (p published) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (p published) Use() string                        { return "sig" }
func (p published) Key() any                           { return &p.private.PublicKey }

func (s *store) rotate() {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		log.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	s.keys = append(s.keys, key{"key-" + strconv.Itoa(s.made), private})
}

func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = s.keys[len(s.keys)-1:]
}

// SigningKey implements op.Storage.
func (s *store) SigningKey(context.Context) (op.SigningKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[len(s.keys)-1], nil
}

// KeySet implements op.Storage.
func (s *store) KeySet(context.Context) (set []op.Key, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.keys {
		set = append(set, published{k})
	}
	return set, nil
}

// client is a service that gets tokens for itself.
type client struct {
	op.Client
	kind op.AccessTokenType
}

func (c client) AccessTokenType() op.AccessTokenType { return c.kind }

var kinds = map[string]op.AccessTokenType{"tokens": op.AccessTokenTypeJWT, "opaque": op.AccessTokenTypeBearer}

// ClientCredentials implements op.ClientCredentialsStorage.
func (s *store) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	kind, known := kinds[id]
	if !known {
		return nil, errors.New("no such client")
	}
	c, err := s.Storage.ClientCredentials(ctx, "sid1", secret)
	return client{c, kind}, err
}

// ClientCredentialsTokenRequest implements op.ClientCredentialsStorage.
func (s *store) ClientCredentialsTokenRequest(_ context.Context, _ string, scopes []string) (op.TokenRequest, error) {
	return &oidc.JWTTokenRequest{Subject: "id1", Audience: []string{"api"}, Scopes: scopes}, nil
}
