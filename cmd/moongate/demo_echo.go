package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

// slowAnswer is how long the slow service takes.
const slowAnswer = 5 * time.Second

// maxEcho is how much of a request's body an echo repeats.
const maxEcho = 64 << 10

// echoed is what an echo service answers: the request as it got it.
type echoed struct {
	Service string            `json:"service"`
	Port    int               `json:"port"`
	Method  string            `json:"method"`
	Path    string            `json:"path"` // with the query, byte for byte
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body,omitempty"`
}

// echo is an upstream that answers with the request it got.
func echo(name string, port int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxEcho))
		if err != nil {
			return // the sender has left or sent nonsense: net/http closes the connection
		}
		writeJSON(w, http.StatusOK, echoed{name, port, r.Method, r.RequestURI, headersOf(r), string(body)})
	})
}

// headersOf is the request's header with the lines of one name joined, Host included.
func headersOf(r *http.Request) map[string]string {
	headers := map[string]string{"Host": r.Host}
	for name, values := range r.Header {
		headers[name] = strings.Join(values, ", ")
	}
	return headers
}

// slow is an echo that takes its time; it stops when nobody waits any more.
func slow(name string, port int) http.Handler {
	answer := echo(name, port)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(slowAnswer):
			answer.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body) // the client left: there is nobody to tell
}
