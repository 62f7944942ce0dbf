package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moongate/moongate/core/server/h2test"
)

// webSocket is one that a script has opened, and what it came by.
type webSocket struct {
	net.Conn
	r     *bufio.Reader
	below net.Conn
}

// socketCommand opens WebSockets and speaks over them.
func socketCommand(ts *testscript.TestScript, neg bool, args []string) {
	const usage = "usage: socket open [-1] NAME PATH [Name:value...], socket say|hear NAME TEXT, socket closed NAME CODE, socket reset|broken NAME"
	if neg || len(args) < 2 {
		ts.Fatalf(usage)
	}
	w := worldOf(ts)
	if args[0] == "open" {
		ts.Check(w.openWebSocket(ts.Getenv("GATEWAY"), args[1:]))
		return
	}
	s := w.sockets[args[1]]
	if s == nil {
		ts.Fatalf("there is no socket %s", args[1])
	}
	_ = s.SetReadDeadline(time.Now().Add(patience))
	switch text := strings.Join(args[2:], " "); args[0] {
	case "say":
		_, err := s.Write(socketFrame(0x81, text, true))
		ts.Check(err)
	case "hear":
		if first, got, err := readSocketFrame(s.r); err != nil || first != 0x81 || got != text {
			ts.Fatalf("heard frame %#x %q, %v", first, got, err)
		}
	case "closed":
		ts.Check(s.closed(text))
	case "reset":
		ts.Check(s.Close())
	case "broken":
		if _, err := s.r.ReadByte(); err == nil || err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
			ts.Fatalf("it ends with %v", err)
		}
	default:
		ts.Fatalf(usage)
	}
}

// openWebSocket shakes hands; what is answered is the world's last answer.
func (w *world) openWebSocket(address string, args []string) error {
	old := args[0] == "-1"
	if old {
		args = args[1:]
	}
	if len(args) < 2 {
		return errors.New("it wants a name and a path")
	}
	var lines []string
	for _, line := range args[2:] {
		name, value, _ := strings.Cut(line, ":")
		lines = append(lines, strings.ToLower(name), value)
	}
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	s := &webSocket{below: nc}
	if w.sockets == nil {
		w.sockets = map[string]*webSocket{}
	}
	w.sockets[args[0]] = s
	a := answer{status: http.StatusSwitchingProtocols}
	if old {
		var head strings.Builder
		for i := 0; i < len(lines); i += 2 {
			fmt.Fprintf(&head, "%s: %s\r\n", lines[i], lines[i+1])
		}
		s.Conn = nc
		s.r, err = openSocket(nc, args[1], head.String())
	} else {
		var c *h2test.Conn
		if c, err = h2test.New(nc); err != nil {
			return err
		}
		var stream *h2test.Stream
		if stream, err = c.Connect(args[1], lines...); err != nil {
			return err
		}
		s.Conn, s.r = stream, bufio.NewReader(stream)
		a.status, a.header = stream.Status(), stream.Header()
		if a.status != http.StatusOK {
			a.body, err = io.ReadAll(stream)
		}
	}
	w.answers = []answer{a}
	return err
}

// closed waits for a Close of that status, answers it, and waits for an end in good order.
func (s *webSocket) closed(code string) error {
	first, payload, err := readSocketFrame(s.r)
	if err != nil || first != 0x88 || len(payload) < 2 || fmt.Sprint(binary.BigEndian.Uint16([]byte(payload))) != code {
		return fmt.Errorf("heard frame %#x %q, %w", first, payload, err)
	}
	if _, err := s.Write(socketFrame(0x88, payload, true)); err != nil {
		return err
	}
	if _, err := s.r.ReadByte(); err != io.EOF {
		return fmt.Errorf("behind the close: %w", err)
	}
	return s.below.Close()
}
