package admin_test

import (
	"net/http"
	"testing"
)

func TestProfilesAreForTheOperator(t *testing.T) {
	d := newDoor()
	if res, _ := d.ask(t, "GET", "/debug/pprof/goroutine?debug=1"); res.StatusCode != http.StatusOK {
		t.Errorf("on loopback: %d", res.StatusCode)
	}
	d.Token = "token-of-the-operator"
	if res, _ := d.ask(t, "GET", "/debug/pprof/heap"); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %d", res.StatusCode)
	}
}

func TestPagesOfOtherSitesAskNothingOfTheOperators(t *testing.T) {
	d := newDoor()
	for _, path := range []string{"/debug/pprof/goroutine?debug=1", "/status"} {
		for line, want := range map[string]int{
			"Sec-Fetch-Site: cross-site":    http.StatusForbidden,
			"Sec-Fetch-Site: same-site":     http.StatusForbidden,
			"Sec-Fetch-Site: same-origin":   http.StatusOK,
			"Sec-Fetch-Site: none":          http.StatusOK,
			"Origin: http://evil.test":      http.StatusForbidden,
			"Origin: null":                  http.StatusForbidden,
			"Origin: http://127.0.0.1:9180": http.StatusOK,
			"Accept: */*":                   http.StatusOK,
		} {
			if res, _ := d.ask(t, "GET", path, line); res.StatusCode != want {
				t.Errorf("GET %s with %s: %d, want %d", path, line, res.StatusCode, want)
			}
		}
	}
}
