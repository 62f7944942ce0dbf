package conf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Values of Active.Check.
const (
	CheckHTTP = "http" // a request, in the upstream's protocol
	CheckTCP  = "tcp"  // a connection, with the TLS handshake where the endpoint has TLS
	CheckGRPC = "grpc" // grpc.health.v1.Health/Check
)

// Active is active health: checks of each endpoint that the gateway makes by itself.
type Active struct {
	Pos       Pos
	On        bool   `key:"-"` // there is an [upstream.health.active]
	Check     string // CheckHTTP, CheckTCP or CheckGRPC
	Method    string
	Path      string // with a query where it has one
	Host      string // "" is what requests have
	Service   string // that is asked about by gRPC; "" is the whole server
	Status    []StatusRange
	Body      string // regular expression (RE2) that the first 64 KiB of the answer match; "": any
	Interval  time.Duration
	Timeout   time.Duration // for one check
	Healthy   int           // successes in a row that bring an endpoint in
	Unhealthy int           // failures in a row that put it out
}

// StatusRange is the statuses from one to another.
type StatusRange struct{ From, To int }

// String writes 200 or 200-299.
func (r StatusRange) String() string {
	if r.From == r.To {
		return strconv.Itoa(r.From)
	}
	return fmt.Sprintf("%d-%d", r.From, r.To)
}

func defaultActive() Active {
	return Active{Check: CheckHTTP, Method: "GET", Path: "/", Status: []StatusRange{{200, 399}}, Interval: 5 * time.Second, Timeout: 2 * time.Second, Healthy: 2, Unhealthy: 3}
}

var activeSection = section[Active]{
	oneOf("check", func(a *Active) *string { return &a.Check }, CheckHTTP, CheckTCP, CheckGRPC),
	text("method", func(a *Active) *string { return &a.Method }, checkMethod),
	text("path", func(a *Active) *string { return &a.Path }, checkPath),
	text("host", func(a *Active) *string { return &a.Host }, checkHost),
	text("service", func(a *Active) *string { return &a.Service }, checkService),
	custom("status", (*binder).bindStatuses),
	text("body", func(a *Active) *string { return &a.Body }, regex),
	duration("interval", func(a *Active) *time.Duration { return &a.Interval }, 10*time.Millisecond, longest),
	duration("timeout", func(a *Active) *time.Duration { return &a.Timeout }, shortest, longest),
	integer("healthy", func(a *Active) *int { return &a.Healthy }, 1, 1000),
	integer("unhealthy", func(a *Active) *int { return &a.Unhealthy }, 1, 1000),
}

// bindActive begins the section with the defaults.
func bindActive(h *Health, p Pos) *Active {
	h.Active = defaultActive()
	h.Active.Pos, h.Active.On = p, true
	return &h.Active
}

// checkActive refuses settings that the kind of check does not look at.
func (b *binder) checkActive(path string, u *Upstream) {
	a := &u.Health.Active
	if !a.On {
		return
	}
	unused := map[string][]string{
		CheckHTTP: {"service"},
		CheckTCP:  {"method", "path", "host", "service", "status", "body"},
		CheckGRPC: {"method", "path", "status", "body"},
	}[a.Check]
	for _, key := range unused {
		if full := path + "." + key; b.written(full) {
			b.errs.Add(b.pos[full], full, "does not go with check = %q: take it away", a.Check)
		}
	}
	if a.Check == CheckGRPC && u.Protocol == ProtocolH1 {
		b.errs.Add(b.where(path+".check", a.Pos), path+".check", `"grpc" needs HTTP/2: the upstream has to say protocol = "h2c", or "h2" with TLS`)
	}
	if a.Body != "" && a.Method == "HEAD" {
		b.errs.Add(b.where(path+".body", a.Pos), path+".body", "never matches, because the answer to HEAD has no body: take one of the two away")
	}
}

// bindStatuses reads a list of statuses and of ranges "200-299".
func (b *binder) bindStatuses(key string, v Value, a *Active) {
	items, ok := v.V.([]Value)
	if !ok {
		b.wants(key, v, `a list of statuses and ranges such as [200, "300-399"]`)
		return
	}
	if a.Status = nil; len(items) == 0 {
		b.errs.Add(v.Pos, key, `is empty: write the statuses of an endpoint that is well, such as ["200-299"]`)
	}
	for i, item := range items {
		r, ok := b.statusRange(fmt.Sprintf("%s[%d]", key, i), item)
		switch {
		case !ok:
		case slices.Contains(a.Status, r):
			b.errs.Add(item.Pos, key, "%s stands twice in the list", r)
		default:
			a.Status = append(a.Status, r)
		}
	}
}

func (b *binder) statusRange(key string, v Value) (StatusRange, bool) {
	if text, is := v.V.(string); is && !v.FromEnv || strings.Contains(text, "-") {
		from, to, _ := strings.Cut(text, "-")
		r := StatusRange{status(from), status(to)}
		if r.From == 0 || r.To == 0 || r.From > r.To {
			b.errs.Add(v.Pos, key, `%q is no range of statuses: write "200-299"`, shorten(text))
			return r, false
		}
		return r, true
	}
	code, ok := b.integer(key, v, 200, 599)
	return StatusRange{int(code), int(code)}, ok
}

// status reads the number of a final answer, 0 when it is none.
func status(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || len(text) != 3 || n < 200 || n > 599 {
		return 0
	}
	return n
}

func checkMethod(text string) string {
	if !isToken(text) || text == "CONNECT" {
		return fmt.Sprintf(`%q is no method: write "GET" or "HEAD"`, shorten(text))
	}
	return ""
}

func checkPath(text string) string {
	if !strings.HasPrefix(text, "/") || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' }) {
		return fmt.Sprintf(`%q is no path: write "/healthz", with other characters as %%XX`, shorten(text))
	}
	return ""
}

func checkHost(text string) string {
	if authority(text) == "" {
		return fmt.Sprintf(`%q is no host: write a name such as "api.example.com"`, shorten(text))
	}
	return ""
}

func checkService(text string) string {
	if len(text) > maxName || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Sprintf(`%q is no service of gRPC: write "package.Service"`, shorten(text))
	}
	return ""
}
