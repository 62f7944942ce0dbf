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
