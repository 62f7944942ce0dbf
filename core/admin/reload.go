package admin

import (
	"net/http"
	"strings"
	"time"
)

// reloadAnswer is what POST /reload says.
type reloadAnswer struct {
	OK bool `json:"ok"`
	*Reloaded
	Milliseconds float64  `json:"milliseconds"`
	Errors       []string `json:"errors,omitempty"`
}

func reload(do func() (Reloaded, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		began := time.Now()
		done, err := do()
		took := float64(time.Since(began).Microseconds()) / 1000
		if err != nil {
			answer(w, http.StatusUnprocessableEntity, reloadAnswer{Milliseconds: took, Errors: lines(err)})
			return
		}
		answer(w, http.StatusOK, reloadAnswer{OK: true, Reloaded: &done, Milliseconds: took})
	}
}

// lines are the single errors behind err, one text each.
func lines(err error) []string {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range many.Unwrap() {
			all = append(all, lines(e)...)
		}
		return all
	}
	return []string{strings.TrimSpace(err.Error())}
}
