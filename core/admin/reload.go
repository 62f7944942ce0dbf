package admin

import (
	"net/http"
	"strings"
	"time"
)

// ReloadAnswer is what POST /reload says, as JSON: with status 200 when OK, with 422 when not.
type ReloadAnswer struct {
	OK           bool     `json:"ok"`
	Generation   uint64   `json:"generation,omitempty"` // the one that serves now
	Milliseconds float64  `json:"milliseconds"`
	Warnings     []string `json:"warnings,omitempty"`
	Errors       []string `json:"errors,omitempty"` // "file:line: what is wrong and what would be right"
}

func reload(do func() (Reloaded, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		began := time.Now()
		done, err := do()
		took := float64(time.Since(began).Microseconds()) / 1000
		if err != nil {
			answer(w, http.StatusUnprocessableEntity, ReloadAnswer{Milliseconds: took, Errors: Lines(err)})
			return
		}
		answer(w, http.StatusOK, ReloadAnswer{OK: true, Generation: done.Generation, Milliseconds: took, Warnings: done.Warnings})
	}
}

// Lines are the single errors behind err, one text each.
func Lines(err error) []string {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range many.Unwrap() {
			all = append(all, Lines(e)...)
		}
		return all
	}
	return []string{strings.TrimSpace(err.Error())}
}
