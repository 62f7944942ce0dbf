// Package admin is the operator's door: what the gateway answers to those who run it and to what watches it.
//
//	GET  /metrics   the metrics, as the handler given renders them
//	GET  /healthz   200 while the process serves
//	GET  /readyz    200 when it wants traffic, 503 with the reason when not
//	POST /reload    reads the configuration and the scripts again: 200, or 422 with every error
//	GET  /status    how listeners, upstreams, filters and Lua machines are
//	POST /check     says what a reload would say and change, and changes nothing
//	GET  /debug/pprof/   the Go profiles: where time, memory and goroutines are (heap, goroutine, profile, trace, ...)
//
// A [Handler] gives the answers, a [Server] keeps one on a listener and moves it when a reload says so. Neither keeps state of
// the gateway or decides anything about it: every answer comes from the functions in [Options]. They never see the traffic of
// clients and never show a secret.
package admin

import (
	"encoding/json"
	"net/http"
)

// Options are what the operator's door opens on. Every function may be called from many goroutines at once.
type Options struct {
	// Metrics renders GET /metrics.
	Metrics http.Handler
	// Ready tells whether the gateway wants traffic and, when it does not, why, in words for an operator.
	Ready func() (bool, string)
	// Reload reads everything again and returns what then serves. Its error is told line by line to whoever asked.
	Reload func() (Reloaded, error)
	// Check does all that Reload does but the swap.
	Check func() (Checked, error)
	// Status tells how the gateway is.
	Status func() Status
	// Token, when it is not empty, is what /reload, /check and /status want as "Authorization: Bearer TOKEN".
	Token string
	// Loopback says that only this machine reaches the listener; a Server finds that out by itself. Elsewhere /reload and
	// /check are refused unless there is a Token.
	Loopback bool
}

// Reloaded tells what serves after a reload.
type Reloaded struct {
	Generation uint64   // counts from 1 at the start of the process
	Warnings   []string // what was accepted and is probably not meant
}

// Handler answers the operator. It is immutable and safe for concurrent use.
type Handler struct {
	mux *http.ServeMux
}

// New makes a handler. Every function of the options must be given.
func New(o Options) *Handler {
	h := &Handler{mux: http.NewServeMux()}
	h.mux.Handle("/metrics", only(http.MethodGet, o.Metrics))
	h.mux.Handle("/healthz", only(http.MethodGet, http.HandlerFunc(healthz)))
	h.mux.Handle("/readyz", only(http.MethodGet, readyz(o.Ready)))
	h.mux.Handle("/reload", guard(o, only(http.MethodPost, reload(o.Reload))))
	h.mux.Handle("/check", guard(o, only(http.MethodPost, check(o.Check))))
	h.mux.Handle("/status", guard(o, only(http.MethodGet, status(o.Status))))
	h.mux.Handle("/debug/pprof/", guard(o, only(http.MethodGet, http.HandlerFunc(profiles))))
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "no such page; there are /metrics, /healthz, /readyz, /status, POST /reload and POST /check")
	})
	return h
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	h.mux.ServeHTTP(w, r)
}

// only lets one method through; HEAD counts as GET.
func only(method string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method || r.Method == http.MethodHead && method == http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		allow := method
		if method == http.MethodGet {
			allow = "GET, HEAD"
		}
		w.Header().Set("Allow", allow)
		refuse(w, http.StatusMethodNotAllowed, r.URL.Path+" answers to "+allow)
	})
}

// refusal is the gateway's standard error JSON without the id of a request.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, refusal{status, message})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body) // the client left: there is nobody to tell
}
