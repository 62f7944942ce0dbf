package server

import (
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// Switch implements proxy.Switcher. The connection closes when its exchange has ended.
func (c *client) Switch() (http1.End, error) {
	c.began.Store(0)
	c.mu.Lock()
	c.switched = true
	c.mu.Unlock()
	c.close = true
	w := &c.x.Response
	out := http1.AppendStatusLine(c.conn.Begin(), w.Status, w.Reason)
	for _, f := range w.Header.Fields() {
		if !f.Kind.Hop() && f.Kind != core.KindContentLength {
			out = http1.AppendField(out, f.Name, f.Value)
		}
	}
	w.Started = true
	if err := c.conn.Flush(append(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"...)); err != nil {
		c.broken = true
		return nil, err
	}
	c.srv.rested.Add(1)
	return c.conn, nil
}
