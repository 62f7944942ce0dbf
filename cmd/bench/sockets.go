package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/moongate/moongate/core/server/h2test"
)

// socketsVerb makes this program the upstream of connections that are held: it answers every request, and echoes over WebSockets.
const socketsVerb = "sockets"

func (b *bench) startSockets() (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := start(loadCPU, filepath.Join(b.dir, "sockets.log"), self, socketsVerb, address(socketsPort), "")
	if err != nil {
		return nil, err
	}
	if err := p.listens(socketsPort); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func serveSockets(listen string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	for {
		nc, err := l.Accept()
		if err != nil {
			return err
		}
		go serveSocket(nc)
	}
}

// serveSocket answers requests until one asks for a WebSocket, and then sends every byte back: unmasked frames of its own would say the same.
func serveSocket(nc net.Conn) {
	defer nc.Close()
	r := bufio.NewReaderSize(nc, 1024)
	for {
		q, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		key := q.Header.Get("Sec-WebSocket-Key")
		if key == "" {
			if _, err := io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
				return
			}
			continue
		}
		if _, err := fmt.Fprintf(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n", acceptOf(key)); err != nil {
			return
		}
		break
	}
	var b [64]byte
	for {
		n, err := r.Read(b[:])
		if err != nil {
			return
		}
		if _, err := nc.Write(b[:n]); err != nil {
			return
		}
	}
}

// acceptOf answers a WebSocket's key (RFC 6455 section 4.2.2).
func acceptOf(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// socketFrame is a masked text frame that says "hi" (RFC 6455 section 5.2).
var socketFrame = []byte{0x81, 0x82, 1, 2, 3, 4, 'h' ^ 1, 'i' ^ 2}

// openSocket opens a WebSocket and has one frame come back.
func openSocket() (*guest, error) {
	g, err := dialGuest()
	if err != nil {
		return nil, err
	}
	const key = "dGhlIHNhbXBsZSBub25jZQ=="
	if _, err := io.WriteString(g.nc, "GET /socket HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+key+"\r\n\r\n"); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(g.r, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Sec-WebSocket-Accept") != acceptOf(key) {
		return nil, fmt.Errorf("handshake answered %s", resp.Status)
	}
	return g, g.echoes()
}

// overHTTP2 is which part of a case's WebSockets shares connections of HTTP/2. One over HTTP/1.1 takes two of the gateway's descriptors.
var overHTTP2 = map[string]float64{"websockets": 0, "websockets-mixed": 0.2, "websockets-h2": 1}

// streams is how many WebSockets share a connection.
const streams = 128

// opener opens WebSockets, that part of them over HTTP/2.
func (p *party) opener(share float64) func() (*guest, error) {
	return func() (*guest, error) {
		p.mu.Lock()
		before := int(float64(p.came) * share)
		p.came++
		over2 := int(float64(p.came)*share) > before
		p.mu.Unlock()
		if !over2 {
			return openSocket()
		}
		c, err := p.conn()
		if err != nil {
			return nil, err
		}
		s, err := c.Connect("/socket")
		if err != nil {
			return nil, err
		}
		if s.Status() != http.StatusOK {
			return nil, fmt.Errorf("handshake over HTTP/2 answered %d", s.Status())
		}
		_ = s.SetDeadline(time.Now().Add(10 * time.Second))
		g := &guest{nc: s, r: bufio.NewReaderSize(s, 64)}
		return g, g.echoes()
	}
}

// conn is a connection of HTTP/2 with room for one more stream.
func (p *party) conn() (*h2test.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		nc, err := net.Dial("tcp", address(moongatePort))
		if err != nil {
			return nil, err
		}
		c, err := h2test.New(nc)
		if err != nil {
			return nil, err
		}
		p.shared, p.left = append(p.shared, c), streams
	}
	p.left--
	return p.shared[len(p.shared)-1], nil
}

// echoes has one frame come back, now and whenever the guest is asked for a sign of life.
func (g *guest) echoes() error {
	g.alive = func(g *guest) error {
		if _, err := g.nc.Write(socketFrame); err != nil {
			return err
		}
		back := make([]byte, len(socketFrame))
		if _, err := io.ReadFull(g.r, back); err != nil {
			return err
		}
		if string(back) != string(socketFrame) {
			return fmt.Errorf("%x came back", back)
		}
		return nil
	}
	return g.alive(g)
}
