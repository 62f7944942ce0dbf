package admin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/moongate/moongate/core/admin"
)

// door is a handler whose parts a test can turn.
type door struct {
	admin.Options
	reloads int
}

func newDoor() *door {
	d := &door{}
	d.Options = admin.Options{
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "up 1\n") }),
		Ready:   func() (bool, string) { return true, "" },
		Reload: func() (admin.Reloaded, error) {
			d.reloads++
			return admin.Reloaded{Generation: uint64(d.reloads + 1)}, nil
		},
		Check: func() (admin.Checked, error) {
			return admin.Checked{Changes: []string{"route user: changed"}, Warnings: []string{"a.toml:1: w"}}, nil
		},
		Status:   func() admin.Status { return admin.Status{Version: "v1", Generation: 3} },
		Loopback: true,
	}
	return d
}

func (d *door) ask(t *testing.T, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:9180"+path, nil)
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	admin.New(d.Options).ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(body)
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/metrics", 200, "up 1\n"},
		{"HEAD", "/metrics", 200, "up 1\n"},
		{"GET", "/healthz", 200, `{"status":"ok"}`},
		{"GET", "/readyz", 200, `{"status":"ready"}`},
		{"GET", "/status", 200, `{"version":"v1","generation":3,`},
		{"POST", "/reload", 200, `{"ok":true,"generation":2,`},
		{"POST", "/check", 200, `{"ok":true,"changes":["route user: changed"],"warnings":["a.toml:1: w"]}`},
		{"GET", "/check", 405, `{"code":405,`},
		{"GET", "/reload", 405, `{"code":405,`},
		{"POST", "/metrics", 405, `{"code":405,`},
		{"DELETE", "/readyz", 405, `{"code":405,`},
		{"GET", "/", 404, `{"code":404,`},
		{"GET", "/debug/other", 404, `{"code":404,`},
	} {
		t.Run(c.method+c.path, func(t *testing.T) {
			resp, body := newDoor().ask(t, c.method, c.path)
			if resp.StatusCode != c.status || !strings.HasPrefix(body, c.body) {
				t.Errorf("answered %d %s, want %d %s", resp.StatusCode, body, c.status, c.body)
			}
			if c.status == 405 && resp.Header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

func TestReadyTellsWhyNot(t *testing.T) {
	d := newDoor()
	d.Ready = func() (bool, string) { return false, "draining" }
	resp, body := d.ask(t, "GET", "/readyz")
	if resp.StatusCode != 503 || !strings.Contains(body, `"reason":"draining"`) {
		t.Errorf("answered %d %s", resp.StatusCode, body)
	}
}

func TestReloadTellsEveryError(t *testing.T) {
	d := newDoor()
	d.Reload = func() (admin.Reloaded, error) {
		return admin.Reloaded{}, errors.Join(errors.New("a.toml:3: port <none>"),
			fmt.Errorf("scripts: %w", errors.New("b.lua:1: unexpected symbol")))
	}
	resp, body := d.ask(t, "POST", "/reload")
	var got struct {
		OK     bool
		Errors []string
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	want := []string{"a.toml:3: port <none>", "scripts: b.lua:1: unexpected symbol"}
	if resp.StatusCode != 422 || got.OK || strings.Join(got.Errors, "|") != strings.Join(want, "|") {
		t.Errorf("answered %d %s, want the errors %q", resp.StatusCode, body, want)
	}
	if strings.Contains(body, "generation") {
		t.Errorf("a refused reload names a generation: %s", body)
	}
}

func TestOnlyTheOperatorReloads(t *testing.T) {
	for _, c := range []struct {
		name     string
		token    string
		loopback bool
		header   []string
		status   int
	}{
		{"loopback without token", "", true, nil, 200},
		{"loopback by name", "", true, []string{"Host: localhost:9180"}, 200},
		{"loopback by IPv6", "", true, []string{"Host: [::1]:9180"}, 200},
		{"a name that resolves to loopback", "", true, []string{"Host: evil.example:9180"}, 403},
		{"a page of another site", "", true, []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"a page of another port", "", true, []string{"Sec-Fetch-Site: same-site"}, 403},
		{"a foreign origin", "", true, []string{"Origin: https://evil.example"}, 403},
		{"a sandboxed page", "", true, []string{"Origin: null"}, 403},
		{"elsewhere without token", "", false, nil, 403},
		{"elsewhere with the token", "s3cret", false, []string{"Host: gw.example", "Authorization: Bearer s3cret"}, 200},
		{"scheme in any case", "s3cret", false, []string{"Authorization: bearer  s3cret"}, 200},
		{"a wrong token", "s3cret", false, []string{"Authorization: Bearer s3cre"}, 401},
		{"no token", "s3cret", false, nil, 401},
		{"an empty token", "s3cret", false, []string{"Authorization: Bearer"}, 401},
		{"another scheme", "s3cret", false, []string{"Authorization: Basic s3cret"}, 401},
		{"two tokens", "s3cret", false, []string{"Authorization: Bearer s3cret", "Authorization: Bearer s3cret"}, 401},
		{"a token holds on loopback too", "s3cret", true, nil, 401},
		{"a page of another site that knows the token", "s3cret", true,
			[]string{"Authorization: Bearer s3cret", "Origin: https://evil.example"}, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDoor()
			d.Token, d.Loopback = c.token, c.loopback
			resp, body := d.ask(t, "POST", "/reload", c.header...)
			if resp.StatusCode != c.status {
				t.Errorf("answered %d %s, want %d", resp.StatusCode, body, c.status)
			}
			if (d.reloads == 1) != (c.status == 200) {
				t.Errorf("reloaded %d times with status %d", d.reloads, c.status)
			}
			if c.token != "" && strings.Contains(body, c.token) {
				t.Errorf("the answer shows the token: %s", body)
			}
		})
	}
}

func TestCheckTellsEveryErrorAndWantsTheToken(t *testing.T) {
	d := newDoor()
	d.Check = func() (admin.Checked, error) {
		return admin.Checked{}, errors.Join(errors.New("a:1: x"), errors.New("a:2: y"))
	}
	if resp, body := d.ask(t, "POST", "/check"); resp.StatusCode != 422 || strings.TrimSpace(body) != `{"ok":false,"errors":["a:1: x","a:2: y"]}` {
		t.Errorf("answered %d %s", resp.StatusCode, body)
	}
	d.Token = "s3cret"
	if resp, _ := d.ask(t, "POST", "/check"); resp.StatusCode != 401 {
		t.Errorf("without the token: %d", resp.StatusCode)
	}
}

func TestScrapersNeedNoToken(t *testing.T) {
	d := newDoor()
	d.Token, d.Loopback = "s3cret", false
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		if resp, body := d.ask(t, "GET", path, "Host: gw.example"); resp.StatusCode != 200 {
			t.Errorf("%s answered %d %s", path, resp.StatusCode, body)
		}
	}
}
