package gateway

import (
	"strconv"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/upstream"
)

// stickyOptions say how clients stay at their endpoint.
func stickyOptions(s *conf.Sticky) upstream.StickyOptions {
	o := upstream.StickyOptions{Header: s.Header, IP: s.IP}
	if s.Cookie == "" {
		return o
	}
	attributes := "; Path=" + s.Path + "; HttpOnly; SameSite=" + s.SameSite
	if s.MaxAge > 0 {
		attributes += "; Max-Age=" + strconv.FormatInt(int64(s.MaxAge/time.Second), 10)
	}
	o.Cookie = &upstream.StickyCookie{Name: s.Cookie, Secret: string(s.Secret), Attributes: attributes, Secure: s.Secure}
	return o
}
