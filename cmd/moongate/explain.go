package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/gateway"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/luaapi"
)

// supposed is the request that explain is asked about.
type supposed struct {
	method   string
	url      string
	all      bool // tell of all other routes
	headers  [][2]string
	body     string
	client   string
	listener string
}

func explainVerb() verb {
	var q supposed
	return verb{
		name:  "explain",
		does:  "tell which route takes a request, why no other does, and which filters run",
		takes: "URL",
		given: &q.url,
		about: `usage: moongate explain [-c FILE] [-X METHOD] [-H 'Name: value']... [--body TEXT|@FILE] [--client ADDRESS]
                        [--listener NAME] [--all] [--format text|json] URL

Reads the configuration and its scripts as a reload would, and tells what would become of a request: the route that takes it and where
that stands, the upstream, the path as it goes out, the filters whose turn comes, and for other routes, those that came nearest first,
the predicates that do not hold. Nobody is asked, no function of a request runs: filters may decide otherwise. URL is a path, or has a
host too. The exit code is 1 when no route takes the request.

  moongate explain -X POST -H 'X-Version: v2' --body '{"kind":"daily"}' http://api.example.com/reports/7`,
		declare: func(fs *flag.FlagSet) func(streams) error {
			file := configFlag(fs)
			fs.StringVar(&q.method, "X", "", "`METHOD` of the request; GET, or POST with a body")
			fs.Func("H", "`'Name: value'` a header; may be repeated", q.addHeader)
			fs.StringVar(&q.body, "body", "", "`TEXT` of the request's body, or @FILE that holds it")
			fs.StringVar(&q.client, "client", "127.0.0.1", "`ADDRESS` that the connection comes from")
			fs.StringVar(&q.listener, "listener", "", "`NAME` of the listener that it comes to")
			fs.BoolVar(&q.all, "all", false, "tell of all other routes, not of the nearest alone")
			format := fs.String("format", "text", "`FORMAT` to print in: text or json")
			return func(s streams) error {
				if *format != "text" && *format != "json" {
					return usagef("--format is text or json, not %q", *format)
				}
				return explain(*file, &q, *format == "json", s.out)
			}
		},
	}
}

func (q *supposed) addHeader(line string) error {
	name, value, ok := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	if !ok || !core.IsToken(core.Bytes(name)) || !core.IsValue(core.Bytes(value)) {
		return fmt.Errorf("want 'Name: value'")
	}
	q.headers = append(q.headers, [2]string{name, value})
	return nil
}

// exchange is the request as the gateway has it when its head has been read.
func (q *supposed) exchange() (*core.Exchange, error) {
	client, err := netip.ParseAddr(q.client)
	if err != nil {
		return nil, usagef("--client is an address, not %q", q.client)
	}
	x := new(core.Exchange)
	x.Reset()
	r := &x.Request
	r.Scheme, r.Listener, r.RemoteAddr = "http", q.listener, netip.AddrPortFrom(client, 50000)
	target, host := q.url, "localhost"
	if scheme, rest, ok := strings.Cut(q.url, "://"); ok {
		if scheme != "http" && scheme != "https" {
			return nil, usagef("%q is no URL: it begins with http://, https:// or /", q.url)
		}
		r.Scheme = scheme
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			rest, end = rest+"/", len(rest)
		} else if rest[end] == '?' {
			rest = rest[:end] + "/" + rest[end:]
		}
		host, target = rest[:end], rest[end:]
	} else if !strings.HasPrefix(target, "/") {
		return nil, usagef("%q is no URL: it begins with http://, https:// or /", q.url)
	}
	path, query, has := strings.Cut(target, "?")
	r.Host, r.RawPath, r.RawQuery, r.HasQuery = []byte(host), []byte(path), []byte(query), has
	r.Header.Add("Host", host)
	for _, line := range q.headers {
		if strings.EqualFold(line[0], "Host") {
			r.Host = []byte(line[1])
			r.Header.Set("Host", line[1])
			continue
		}
		r.Header.Add(line[0], line[1])
	}
	if !http1.IsAuthority(r.Host) {
		return nil, usagef("%q is no host, or host:port", r.Host)
	}
	if err := q.attach(&r.Body); err != nil {
		return nil, err
	}
	if r.Method = q.method; r.Method == "" {
		r.Method = "GET"
		if q.body != "" {
			r.Method = "POST"
		}
	}
	switch {
	case !core.IsToken(core.Bytes(r.Method)):
		return nil, usagef("%q is no method", r.Method)
	case r.Method == "CONNECT" || r.Method == "TRACE":
		return nil, usagef("%s is not served, whatever the routes say", r.Method)
	}
	return x, nil
}

// mostBody bounds the body that is read from a file.
const mostBody = 64 << 20

func (q *supposed) attach(body *core.Body) error {
	if q.body == "" {
		body.Attach(nil, 0)
		return nil
	}
	data := []byte(q.body)
	if name, ok := strings.CutPrefix(q.body, "@"); ok {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if data, err = io.ReadAll(io.LimitReader(f, mostBody+1)); err != nil {
			return err
		}
		if len(data) > mostBody {
			return usagef("--body: %s is longer than %d MiB", name, mostBody>>20)
		}
	}
	body.Attach(bytes.NewReader(data), int64(len(data)))
	return nil
}

func explain(file string, q *supposed, asJSON bool, out io.Writer) error {
	log := slog.New(slog.DiscardHandler)
	scripts := newScripting(log)
	defer scripts.close()
	c, err := conf.Load(file, conf.Options{Also: scripts.faults})
	if err != nil {
		return fmt.Errorf("%s is wrong:\n%w", file, err)
	}
	if !slices.ContainsFunc(c.Listeners, func(l conf.Listener) bool { return q.listener == "" || l.Name == q.listener }) {
		return usagef("--listener: no listener is named %q", q.listener)
	}
	var filters *luaapi.Pipeline
	build := func(parts gateway.Parts) (gateway.Built, error) {
		built, err := scripts.build(parts)
		filters, _ = built.Pipeline.(*luaapi.Pipeline)
		return built, err
	}
	g, err := gateway.Check(gateway.Options{Pipeline: build, Faults: scripts.faults, Log: log}, c)
	if err != nil {
		return fmt.Errorf("%s is wrong:\n%w", file, err)
	}
	x, err := q.exchange()
	if err != nil {
		return err
	}
	found, err := g.Explain(x)
	if err != nil {
		return err
	}
	e := newExplained(x, found, filters)
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(e)
	} else {
		err = e.print(out, q.all)
	}
	if err == nil && found.Route == nil {
		err = fmt.Errorf("no route takes it: %d %s", e.Status, e.Message)
	}
	return err
}
