package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// openSocket shakes hands for a WebSocket (RFC 6455 section 4.1). lines are more lines of the head.
func openSocket(nc net.Conn, path, lines string) (*bufio.Reader, error) {
	const key = "dGhlIHNhbXBsZSBub25jZQ=="
	if _, err := fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: gw\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n%s\r\n",
		path, key, lines); err != nil {
		return nil, err
	}
	r := bufio.NewReader(nc)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != socketAccept(key) {
		return nil, fmt.Errorf("handshake answered with %s", resp.Status)
	}
	return r, nil
}

func socketAccept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// socketFrame is a frame of less than 126 bytes, masked as clients do it.
func socketFrame(first byte, payload string, masked bool) []byte {
	out := []byte{first, byte(len(payload))}
	if !masked {
		return append(out, payload...)
	}
	key := [4]byte{1, 2, 3, 4}
	out[1] |= 0x80
	out = append(out, key[:]...)
	for i := range len(payload) {
		out = append(out, payload[i]^key[i&3])
	}
	return out
}

// readSocketFrame reads such a frame, masked or not.
func readSocketFrame(r *bufio.Reader) (first byte, payload string, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, "", err
	}
	var key [4]byte
	if head[1]&0x80 != 0 {
		if _, err := io.ReadFull(r, key[:]); err != nil {
			return 0, "", err
		}
	}
	b := make([]byte, head[1]&0x7f)
	_, err = io.ReadFull(r, b)
	for i := range b {
		b[i] ^= key[i&3]
	}
	return head[0], string(b), err
}

// echoSocket is the other end: it sends back every message with a prefix, and a Close as it is.
func echoSocket(w http.ResponseWriter, r *http.Request, prefix string) {
	nc, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer nc.Close()
	var head strings.Builder
	fmt.Fprintf(&head, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n", socketAccept(r.Header.Get("Sec-WebSocket-Key")))
	if _, err := io.WriteString(nc, head.String()); err != nil {
		return
	}
	for {
		first, payload, err := readSocketFrame(rw.Reader)
		if err != nil {
			return
		}
		if first != 0x88 {
			payload = prefix + ":" + payload
		}
		if _, err := nc.Write(socketFrame(first, payload, false)); err != nil || first == 0x88 {
			return
		}
	}
}
