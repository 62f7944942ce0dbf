package proxy

import "github.com/moongate/moongate/core/upstream"

// keep gives a client whose endpoint is another than before, or the first, the cookie by which it comes back there. One that a script has chosen,
// or that failed, is not to be come back to.
func (l *Leg) keep() {
	c := l.up.Cookie()
	w := &l.x.Response
	if c == nil || l.pinned != nil || l.attempt.Endpoint == l.kept || w.Status >= 500 || l.x.Request.Own {
		return
	}
	w.Header.Add("Set-Cookie", l.cookie(c))
}

func (l *Leg) cookie(c *upstream.StickyCookie) string {
	text := c.Name + "=" + l.up.Mark(l.attempt.Endpoint) + c.Attributes
	if c.Secure || l.x.Request.Scheme == "https" {
		text += "; Secure"
	}
	return text
}
