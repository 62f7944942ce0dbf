package admin

import (
	"net/http"
	"net/http/pprof"
	"strings"
)

// profiles serves what package net/http/pprof has to show, so that an operator can see what a busy gateway does.
func profiles(w http.ResponseWriter, r *http.Request) {
	w.Header().Del("X-Content-Type-Options")
	switch strings.TrimPrefix(r.URL.Path, "/debug/pprof/") {
	case "cmdline":
		pprof.Cmdline(w, r)
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}
