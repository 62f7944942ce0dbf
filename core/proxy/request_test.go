package proxy_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
)

// tell answers with the request as it came: target, host and each line of the head but for those that a codec writes.
func tell(w http.ResponseWriter, r *http.Request) {
	lines := []string{r.Method + " " + r.RequestURI}
	for name, values := range r.Header {
		switch name {
		case "Via", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host":
			if r.URL.Query().Has("plain") {
				continue
			}
		case "Content-Length":
			continue
		}
		lines = append(lines, name+": "+strings.Join(values, " | "))
	}
	slices.Sort(lines[1:])
	_, _ = fmt.Fprint(w, strings.Join(lines, "\n"))
}

func TestPathAndQueryGoOutAsRouteAndFiltersSay(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		o := options(served(t, protocol, tell))
		o.Protocol = protocol
		up := open(t, o)
		for _, c := range []struct {
			name, path string
			change     func(x *core.Exchange)
			want       string
		}{
			{"as it came", "/a%2Fb/%7e?x=%20&y", nil, "/a%2Fb/%7e?x=%20&y"},
			{"an empty query", "/a?", nil, "/a?"},
			{"two slashes", "//a", nil, "//a"},
			{"without segments", "/api/v1/users", func(x *core.Exchange) { x.Route.StripSegments = 2 }, "/users"},
			{"without a prefix", "/api/users?q=1", func(x *core.Exchange) { x.Route.StripPrefix = "/api" }, "/users?q=1"},
			{"without all of it", "/api", func(x *core.Exchange) { x.Route.StripPrefix = "/api" }, "/"},
			{"rewritten", "/old/7", func(x *core.Exchange) {
				x.Route.Rewrite, x.Route.RewriteTo = regexp.MustCompile("^/old/(.*)$"), "/new/$1"
			}, "/new/7"},
			{"by a filter", "/a?b=c", func(x *core.Exchange) {
				x.Request.TargetPath, x.Request.TargetQuery, x.Request.QuerySet = []byte("/else"), []byte("d=e"), true
			}, "/else?d=e"},
			{"by a filter, without the query", "/a?b=c", func(x *core.Exchange) { x.Request.QuerySet = true }, "/a"},
		} {
			x := request("GET", c.path)
			if c.change != nil {
				c.change(x)
			}
			got := forward(t, x, up, new(client))
			if line, _, _ := strings.Cut(got.text, "\n"); got.status != 200 || line != "GET "+c.want {
				t.Errorf("%s: %d %q, want %q", c.name, got.status, line, c.want)
			}
		}
	})
}

func TestLinesOfOneConnectionEndHereAndOthersPass(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		o := options(served(t, protocol, tell))
		o.Protocol = protocol
		up := open(t, o)
		x := request("GET", "/?plain", with("X-Kept", "1", "X-Kept", "2", "Keep-Alive", "timeout=5", "Proxy-Connection", "close",
			"Upgrade", "h2c", "X-Trace-Id", "of the client", "User-Agent", "test"))
		x.TraceID = []byte("trace-1")
		want := "GET /?plain\nUser-Agent: test\nX-Kept: 1 | 2\nX-Trace-Id: trace-1"
		if got := forward(t, x, up, new(client)); got.status != 200 || got.text != want {
			t.Errorf("%d %q, want %q", got.status, got.text, want)
		}
	})
}

func TestTheEndpointHearsWhoAsked(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		url := served(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			h := r.Header
			_, _ = fmt.Fprint(w, r.Host, h["X-Forwarded-For"], h["X-Forwarded-Proto"], h["X-Forwarded-Host"], h["X-Forwarded-Prefix"], h["Via"])
		})
		authority := strings.TrimPrefix(url, "http://")
		for _, c := range []struct {
			name, host string
			change     func(x *core.Exchange)
			want       string
		}{
			{"a client", "upstream", nil, authority + "[192.0.2.7] [http] [gateway.test] [] [1.1 moongate]"},
			{"its host", "client", nil, "gateway.test[192.0.2.7] [http] [gateway.test] [] [1.1 moongate]"},
			{"a fixed host", "api.test", nil, "api.test[192.0.2.7] [http] [gateway.test] [] [1.1 moongate]"},
			{"behind a trusted proxy", "upstream",
				with("X-Forwarded-For", "198.51.100.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "front.test"),
				authority + "[198.51.100.1, 192.0.2.7] [https] [front.test] [] [1.1 moongate]"},
			{"over HTTP/2, with a prefix taken off", "upstream", func(x *core.Exchange) {
				x.Request.Proto, x.Route.StripPrefix = core.HTTP2, "/api"
			}, authority + "[192.0.2.7] [http] [gateway.test] [/api] [2.0 moongate]"},
			{"the gateway itself", "client", func(x *core.Exchange) { x.Request.Own, x.Request.Host = true, nil }, authority + "[] [] [] [] []"},
		} {
			o := options(url)
			o.Protocol, o.Host = protocol, c.host
			x := request("GET", "/api/x")
			if c.change != nil {
				c.change(x)
			}
			if got := forward(t, x, open(t, o), new(client)); got.status != 200 || got.text != c.want {
				t.Errorf("%s: %d %q, want %q", c.name, got.status, got.text, c.want)
			}
		}
	})
}

func TestALocationThatNamesTheEndpointLeadsBackThroughTheGateway(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		var url string
		url = served(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", strings.Replace(r.Header.Get("X-Location"), "ENDPOINT", url, 1))
			w.WriteHeader(302)
		})
		o := options(url)
		o.Protocol = protocol
		up := open(t, o)
		for location, want := range map[string]string{
			"ENDPOINT/b?c#d":        "http://gateway.test/api/b?c#d",
			"ENDPOINT":              "http://gateway.test/api",
			"ENDPOINT.example.com/": url + ".example.com/",
			"/b":                    "/b",
			"http://other.test/b":   "http://other.test/b",
		} {
			x := request("GET", "/api/a", with("X-Location", location))
			x.Route.StripPrefix = "/api"
			if got := forward(t, x, up, new(client)); got.status != 302 || string(x.Response.Header.Get("Location")) != want {
				t.Errorf("%s became %s, want %s", location, x.Response.Header.Get("Location"), want)
			}
		}
	})
}
