package admin

import "net/http"

type health struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

func healthz(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, health{Status: "ok"})
}

func readyz(ready func() (bool, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		ok, reason := ready()
		if !ok {
			answer(w, http.StatusServiceUnavailable, health{Status: "not ready", Reason: reason})
			return
		}
		answer(w, http.StatusOK, health{Status: "ready"})
	}
}
