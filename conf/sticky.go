package conf

import (
	"fmt"
	"strings"
	"time"
)

// Values of Sticky.SameSite.
const (
	SameSiteLax    = "Lax"
	SameSiteStrict = "Strict"
	SameSiteNone   = "None"
)

// Sticky is by what clients stay at the endpoint that they were at: a cookie of the gateway's own, a header, or their address. Without one of these
// they do not.
type Sticky struct {
	Pos      Pos
	Cookie   string // its name
	Header   string
	IP       bool   `key:"ip"`
	Secret   Secret // key of the marks in cookies
	Path     string
	MaxAge   time.Duration // 0: until the browser ends
	Secure   bool          // always; else where requests come over https
	SameSite string        // SameSiteLax, SameSiteStrict or SameSiteNone
}

func defaultSticky() Sticky { return Sticky{Path: "/", SameSite: SameSiteLax} }

// leastStickySecret is the length of a secret in bytes.
const leastStickySecret = 16

var stickySection = section[Sticky]{
	text("cookie", func(s *Sticky) *string { return &s.Cookie }, stickyName),
	text("header", func(s *Sticky) *string { return &s.Header }, headerName),
	boolean("ip", func(s *Sticky) *bool { return &s.IP }),
	secret("secret", func(s *Sticky) *Secret { return &s.Secret }),
	text("path", func(s *Sticky) *string { return &s.Path }, cookiePath),
	duration("max_age", func(s *Sticky) *time.Duration { return &s.MaxAge }, time.Second, 400*24*time.Hour),
	boolean("secure", func(s *Sticky) *bool { return &s.Secure }),
	oneOf("same_site", func(s *Sticky) *string { return &s.SameSite }, SameSiteLax, SameSiteStrict, SameSiteNone),
}

func (b *binder) checkSticky(path string, s *Sticky) {
	if !b.written(path) {
		return
	}
	ways := 0
	for _, is := range []bool{s.Cookie != "", s.Header != "", s.IP} {
		if is {
			ways++
		}
	}
	if b.faulty(path+".cookie") || b.faulty(path+".header") || b.faulty(path+".ip") {
		return
	}
	if ways != 1 {
		b.errs.Add(s.Pos, path, `wants one of cookie = "NAME", header = "NAME" and ip = true`)
		return
	}
	if s.Cookie != "" {
		b.checkStickyCookie(path, s)
		return
	}
	for _, key := range []string{"secret", "path", "max_age", "secure", "same_site"} {
		if full := path + "." + key; b.written(full) {
			b.errs.Add(b.pos[full], full, "is for cookies: take it away")
		}
	}
}

func (b *binder) checkStickyCookie(path string, s *Sticky) {
	switch {
	case b.faulty(path + ".secret"):
	case s.Secret == "":
		b.errs.Add(s.Pos, path, `has no secret, with which nobody reads addresses out of cookies or makes them: write secret = "${STICKY_SECRET}"`)
	case len(s.Secret) < leastStickySecret:
		b.errs.Add(b.pos[path+".secret"], path+".secret", "is shorter than %d bytes: write a long random one", leastStickySecret)
	}
	if s.SameSite == SameSiteNone && !s.Secure {
		b.errs.Add(b.where(path+".same_site", s.Pos), path+".same_site", `"None" needs secure = true, else browsers refuse the cookie`)
	}
	switch {
	case strings.HasPrefix(s.Cookie, "__Secure-") && !s.Secure:
		b.errs.Add(b.pos[path+".cookie"], path+".cookie", "a name that begins with __Secure- needs secure = true, else browsers refuse the cookie")
	case strings.HasPrefix(s.Cookie, "__Host-") && (!s.Secure || s.Path != "/"):
		b.errs.Add(b.pos[path+".cookie"], path+".cookie", `a name that begins with __Host- needs secure = true and path = "/", else browsers refuse the cookie`)
	}
}

func stickyName(text string) string {
	if !isToken(text) || len(text) > maxName {
		return fmt.Sprintf("%q is no name of a cookie: write letters, digits, - and _", shorten(text))
	}
	return ""
}

func cookiePath(text string) string {
	if !strings.HasPrefix(text, "/") || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ';' || r == ',' }) {
		return fmt.Sprintf(`%q is no path of a cookie: write "/" or "/shop"`, shorten(text))
	}
	return ""
}
