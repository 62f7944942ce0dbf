// Package h2test is a client of HTTP/2 that opens WebSockets by extended CONNECT (RFC 8441) and shows each frame's meaning: for tests, and for
// the benchmark of what rests. net/http's own client refuses to send :protocol.
package h2test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Conn is one connection. It is safe for concurrent use.
type Conn struct {
	nc   net.Conn
	done chan struct{} // closed when reading has ended

	writing sync.Mutex // guards what follows
	framer  *http2.Framer
	head    bytes.Buffer
	encoder *hpack.Encoder
	next    uint32

	mu       sync.Mutex // guards what follows, and the streams
	changed  sync.Cond
	settings map[http2.SettingID]uint32
	greeted  bool
	away     bool
	window   int64 // that the server lets be sent
	streams  map[uint32]*Stream
	err      error
}

const firstWindow = 1<<16 - 1

// New speaks HTTP/2 on a connection, after any handshake of TLS, and waits for the server's settings.
func New(nc net.Conn) (*Conn, error) {
	c := &Conn{nc: nc, done: make(chan struct{}), framer: http2.NewFramer(nc, nc), next: 1, window: firstWindow,
		settings: map[http2.SettingID]uint32{http2.SettingInitialWindowSize: firstWindow}, streams: map[uint32]*Stream{}}
	c.changed.L = &c.mu
	c.encoder = hpack.NewEncoder(&c.head)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(nc, http2.ClientPreface); err != nil {
		return nil, err
	}
	if err := c.framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}); err != nil {
		return nil, err
	}
	if err := c.framer.WriteWindowUpdate(0, 1<<30); err != nil { // streams have their own
		return nil, err
	}
	go c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.greeted && c.err == nil {
		c.changed.Wait()
	}
	return c, c.err
}

// Setting is what the server's settings say, 0 where they say nothing.
func (c *Conn) Setting(id http2.SettingID) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings[id]
}

// GoingAway tells whether the server has asked the connection to end.
func (c *Conn) GoingAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away
}

// Close cuts the connection.
func (c *Conn) Close() error {
	err := c.nc.Close()
	<-c.done
	return err
}

// Open sends the head of a request: names and values in turn, pseudo-headers first. ended says that no body follows.
func (c *Conn) Open(ended bool, fields ...string) (*Stream, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	s := &Stream{c: c, id: c.next}
	c.next += 2
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	s.window = int64(c.settings[http2.SettingInitialWindowSize])
	c.streams[s.id] = s
	c.mu.Unlock()
	c.head.Reset()
	for i := 0; i < len(fields); i += 2 {
		if err := c.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return nil, err
		}
	}
	return s, c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: c.head.Bytes(), EndHeaders: true, EndStream: ended})
}

// Connect asks for a WebSocket and waits for the answer, whatever that is. more are names and values of further lines.
func (c *Conn) Connect(path string, more ...string) (*Stream, error) {
	s, err := c.Open(false, append([]string{":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":path", path, ":authority", "gw",
		"sec-websocket-version", "13"}, more...)...)
	if err != nil {
		return nil, err
	}
	return s, s.Wait()
}

// read takes frames until the connection ends.
func (c *Conn) read() {
	defer close(c.done)
	for {
		f, err := c.framer.ReadFrame()
		if err == nil {
			err = c.take(f)
		}
		if se, ok := errors.AsType[http2.StreamError](err); ok {
			err = fmt.Errorf("malformed answer: %w", se)
		}
		if err != nil {
			c.mu.Lock()
			c.err = err
			c.changed.Broadcast()
			c.mu.Unlock()
			return
		}
	}
}

func (c *Conn) take(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.SettingsFrame:
		return c.settle(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			c.writing.Lock()
			defer c.writing.Unlock()
			return c.framer.WritePing(true, f.Data)
		}
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed.Broadcast()
	s := c.streams[f.Header().StreamID]
	switch f := f.(type) {
	case *http2.GoAwayFrame:
		c.away = true
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			c.window += int64(f.Increment)
		} else if s != nil {
			s.window += int64(f.Increment)
		}
	case *http2.MetaHeadersFrame:
		if s != nil {
			s.answered(f)
		}
	case *http2.DataFrame:
		if s != nil {
			s.in = append(s.in, f.Data()...)
			s.ended = s.ended || f.StreamEnded()
		}
	case *http2.RSTStreamFrame:
		if s != nil && s.reset == nil {
			s.reset = &ResetError{f.ErrCode}
		}
	}
	return nil
}

func (c *Conn) settle(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	c.mu.Lock()
	_ = f.ForeachSetting(func(s http2.Setting) error {
		if s.ID == http2.SettingInitialWindowSize {
			for _, stream := range c.streams {
				stream.window += int64(s.Val) - int64(c.settings[s.ID])
			}
		}
		c.settings[s.ID] = s.Val
		return nil
	})
	c.greeted = true
	c.changed.Broadcast()
	c.mu.Unlock()
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.framer.WriteSettingsAck()
}

// statusOf reads :status.
func statusOf(f *http2.MetaHeadersFrame) int {
	n, _ := strconv.Atoi(f.PseudoValue("status"))
	return n
}
