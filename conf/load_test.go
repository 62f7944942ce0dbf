package conf_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/conf/source"
)

// oneRoute is the least that loads.
const oneRoute = "[[route]]\nname = \"all\"\nupstream = \"http://127.0.0.1:9001\"\n"

// load loads a text with the files of world around it.
func load(t *testing.T, text string) *conf.Config {
	t.Helper()
	c, err := conf.Load("x", world("x", text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refused loads a text and returns its errors.
func refused(t *testing.T, text string) conf.Errors {
	t.Helper()
	c, err := conf.Load("x", world("x", text))
	var errs conf.Errors
	if c != nil || !errors.As(err, &errs) || len(errs) == 0 {
		t.Fatalf("%q loads or gives another error: %v", text, err)
	}
	return errs
}

func TestDefaultsAreComplete(t *testing.T) {
	c := load(t, oneRoute)
	u := c.Upstream("http://127.0.0.1:9001")
	for _, got := range []struct{ got, want any }{
		{c.Listeners[0].Address, "127.0.0.1:8080"},
		{c.Admin.Address, "127.0.0.1:9180"},
		{c.HTTP.Path, conf.PathStrict},
		{fmt.Sprint(c.HTTP.IdentityHeaders), "[X-User-Id X-User-Role]"},
		{c.HTTP.MaxHead, int64(64 << 10)},
		{c.HTTP.MaxURL, int64(16 << 10)},
		{c.HTTP.MaxBody, int64(10 << 20)},
		{c.HTTP.BodyBuffer, int64(1 << 20)},
		{c.HTTP.HeadTimeout, 10 * time.Second},
		{c.HTTP.IdleTimeout, 60 * time.Second},
		{c.HTTP.BodyIdle, 30 * time.Second},
		{c.HTTP.MinRate, int64(100)},
		{c.HTTP.RateGrace, 5 * time.Second},
		{c.HTTP.Drain, 10 * time.Second},
		{fmt.Sprint(c.Pipeline.Stages), "[log limit auth route transform]"},
		{c.Scripts.Dir, "scripts"},
		{c.Scripts.VMs, 64},
		{c.Scripts.Wait, 100 * time.Millisecond},
		{c.Scripts.Budget, 50 * time.Millisecond},
		{c.Scripts.MaxWaiting, 1024},
		{c.Scripts.MaxString, int64(1 << 20)},
		{c.Log.Access, conf.AccessStdout},
		{c.Log.Level, "info"},
		{u.Balance, conf.RoundRobin},
		{u.Host, conf.HostUpstream},
		{u.Timeouts.Connect, time.Second},
		{u.Timeouts.FirstByte, 10 * time.Second},
		{u.Timeouts.IdleRead, 30 * time.Second},
		{u.Timeouts.Total, 15 * time.Second},
		{u.Timeouts.BodyTotal, time.Duration(0)},
		{u.Pool.Connections, 256},
		{u.Pool.Wait, time.Second},
		{u.Pool.Upgrades, 0},
		{u.Health.Failures, 5},
		{u.Health.Out, 10 * time.Second},
		{u.Health.Probes, 1},
		{u.Retry.Attempts, 0},
		{u.Retry.Budget, 20},
		{c.Routes[0].Timeouts.Total, 15 * time.Second},
		{c.Routes[0].HTTP.MaxBody, int64(10 << 20)},
	} {
		if got.got != got.want {
			t.Errorf("got %v, want %v", got.got, got.want)
		}
	}
}

func TestRouteTakesTimeoutsFromItsUpstreamAndHTTPFromTheTop(t *testing.T) {
	c := load(t, `
[http]
max_body = "2MiB"
[[upstream]]
name = "u"
endpoints = ["http://127.0.0.1:9001"]
[upstream.timeouts]
total = "8s"
[[route]]
name = "all"
upstream = "u"
[route.timeouts]
idle_read = "1s"
[[route]]
name = "short"
path = "/short"
upstream = "u"
[route.timeouts]
total = "2s"
[route.http]
path = "raw"
`)
	all, short := c.Route("all"), c.Route("short")
	if all.Timeouts.IdleRead != time.Second || all.Timeouts.Total != 8*time.Second || all.HTTP.MaxBody != 2<<20 {
		t.Errorf("%+v", all)
	}
	if all.Timeouts.FirstByte != 8*time.Second {
		t.Errorf("the default first_byte is %s, beyond the total", all.Timeouts.FirstByte)
	}
	if short.Timeouts.FirstByte != 2*time.Second || short.HTTP.Path != conf.PathRaw || short.HTTP.MaxBody != 2<<20 {
		t.Errorf("%+v", short)
	}
}

func TestPathsOfFilesAreBesideTheConfiguration(t *testing.T) {
	c, err := conf.Load("etc/gw/gateway.toml", conf.Options{Env: noEnv, Files: source.Map(map[string]string{
		"etc/gw/gateway.toml": "[log]\naccess = \"../log/access.log\"\n[scripts]\ndir = \"../lua\"\n" + oneRoute,
		"etc/lua/a.lua":       "return {}",
	})})
	if err != nil {
		t.Fatal(err)
	}
	if c.Log.Access != "etc/log/access.log" || c.Scripts.Dir != "etc/lua" || c.Scripts.Live["a"].Path != "etc/lua/a.lua" {
		t.Errorf("%+v %+v", c.Log, c.Scripts)
	}
}

func TestEncodings(t *testing.T) {
	for name, text := range map[string]string{
		"byte order mark": "\xef\xbb\xbf" + oneRoute,
		"CRLF":            strings.ReplaceAll(oneRoute, "\n", "\r\n"),
		"no last newline": strings.TrimSuffix(oneRoute, "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			c := load(t, text)
			if pos := c.Pos("route.all.upstream"); pos.Line != 3 {
				t.Errorf("upstream in %s", pos)
			}
		})
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":                  {"", "x:1: the file is empty"},
		"blank":                  {" \n\t\n", "x:1: the file is empty"},
		"only a byte order mark": {"\xef\xbb\xbf", "x:1: the file is empty"},
		"only comments":          {"# nothing\n", "there is no route"},
		"UTF-16 little":          {"\xff\xfe[\x00[\x00", "UTF-16"},
		"UTF-16 big":             {"\xfe\xff\x00[\x00[", "UTF-16"},
		"UTF-16 without mark":    {"[\x00[\x00r\x00", "UTF-16"},
		"Latin 1":                {oneRoute + "# caf\xe9\n", "line 4 is no UTF-8"},
		"a zero byte":            {oneRoute + "\x00", "x:4: the TOML is wrong"},
		"deep arrays":            {"a = " + strings.Repeat("[", 1<<20), "nest more than 32 deep"},
		"deep tables":            {"a = " + strings.Repeat("{a=", 1<<20), "nest more than 32 deep"},
		"deep keys":              {strings.Repeat("a.", 1<<20) + "a = 1", "nest more than 32 deep"},
		"too large":              {strings.Repeat("#", source.MaxFile+1), "larger than 16MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := refused(t, c.text); !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestFileCutAnywhereNeverLoadsWithLessThanItsLines(t *testing.T) {
	text := "[http]\nmax_head = \"8KiB\" # a head\n" + oneRoute + "[route.timeouts]\ntotal = \"5s\"\n# The end.\n"
	for n := range text {
		c, err := conf.Load("x", world("x", text[:n]))
		if err != nil {
			var errs conf.Errors
			if !errors.As(err, &errs) || errs[0].Pos.Line == 0 {
				t.Errorf("cut at %d: %v", n, err)
			}
			continue
		}
		if rest := text[:n]; !strings.HasSuffix(rest, "\n") && !strings.HasSuffix(rest, `"`) && !strings.HasSuffix(rest, "]") {
			t.Errorf("cut at %d, %q loads: %v", n, rest[max(0, n-20):], c.Routes)
		}
	}
}

func TestSettingsThatNothingComesOfAreWarnedOf(t *testing.T) {
	const up = "[[upstream]]\nname = \"u\"\nendpoints = [\"http://127.0.0.1:9001\"]\n"
	for lines, warnings := range map[string]int{"retry.status = [503]\n": 1, "retry.budget = 5\n": 1, "retry = { attempts = 0, budget = 5 }\n": 0, "": 0,
		"breaker.open = \"5s\"\n": 1, "breaker = { failures = 5, window = \"5s\" }\n": 1, "breaker = { failures = 5, open = \"5s\" }\n": 0, "breaker = { errors = 5, window = \"5s\" }\n": 0, "breaker = { errors = 0, window = \"5s\" }\n": 0} {
		c := load(t, up+lines+strings.Replace(oneRoute, "http://127.0.0.1:9001", "u", 1))
		if len(c.Warnings) != warnings {
			t.Errorf("%q warns %v", lines, c.Warnings)
		}
	}
}

func TestNumberAtACutIsWarnedOf(t *testing.T) {
	if c := load(t, oneRoute+"priority = 1"); len(c.Warnings) != 1 {
		t.Errorf("warnings: %v", c.Warnings)
	}
	if c := load(t, oneRoute+"strip_prefix = false"); len(c.Warnings) != 0 {
		t.Errorf("warnings: %v", c.Warnings)
	}
}

func TestMissingFile(t *testing.T) {
	_, err := conf.Load("gone.toml", conf.Options{Files: source.Map(nil)})
	if err == nil || err.Error() != "gone.toml: cannot be read: file does not exist" {
		t.Error(err)
	}
}

// moving is a place whose script changes while the configuration is being read, so many times.
type moving struct {
	now   map[string]string
	moves int
}

func (m *moving) at() source.Files { return source.Map(m.now) }

func (m *moving) ReadFile(name string) ([]byte, error) {
	text, err := m.at().ReadFile(name)
	if name == "scripts/a.lua" && m.moves > 0 {
		m.moves--
		m.now["scripts/a.lua"] += "-- more"
		m.now["x"] += "# more\n"
	}
	return text, err
}

func (m *moving) ReadDir(name string) ([]fs.DirEntry, error) { return m.at().ReadDir(name) }
func (m *moving) Stat(name string) (fs.FileInfo, error)      { return m.at().Stat(name) }

func TestConfigurationAndScriptsAreOfOneMoment(t *testing.T) {
	for moves, loads := range map[int]bool{0: true, 1: true, 4: true, 5: false} {
		m := &moving{now: map[string]string{"x": oneRoute, "scripts/a.lua": "return {}"}, moves: moves}
		c, err := conf.Load("x", conf.Options{Env: noEnv, Files: m})
		switch {
		case !loads && (err == nil || !strings.Contains(err.Error(), "change while they are read")):
			t.Errorf("%d moves: %v", moves, err)
		case loads && err != nil:
			t.Errorf("%d moves: %v", moves, err)
		case loads && strings.Count(c.Scripts.Live["a"].Source, "more") != moves:
			t.Errorf("%d moves: an old script is loaded", moves)
		}
	}
}

func TestFilesMayComeFromAnFS(t *testing.T) {
	fsys := fstest.MapFS{
		"conf/gateway.toml":  {Data: []byte("include = [\"routes/*.toml\"]\n[scripts]\ndir = \"../scripts\"\n")},
		"conf/routes/a.toml": {Data: []byte(oneRoute)},
		"scripts/a.lua":      {Data: []byte("return {}")},
		"scripts/words.txt":  {Data: []byte("words")},
	}
	c, err := conf.Load("/conf/gateway.toml", conf.Options{Env: noEnv, Files: source.FS(fsys)})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Routes) != 1 || len(c.Scripts.Live) != 1 || c.Filter("a") == nil {
		t.Errorf("%+v", c)
	}
	if text, err := c.Scripts.ReadFile("words.txt"); string(text) != "words" || err != nil {
		t.Error(string(text), err)
	}
	for _, outside := range []string{"../conf/gateway.toml", "/conf/gateway.toml", ""} {
		if _, err := c.Scripts.ReadFile(outside); err == nil {
			t.Errorf("%q can be read", outside)
		}
	}
	if _, err := c.Scripts.ReadFile("gone.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestScriptsFolder(t *testing.T) {
	t.Run("may be missing while nobody names it", func(t *testing.T) {
		c, err := conf.Load("x", conf.Options{Files: source.Map(map[string]string{"x": oneRoute})})
		if err != nil || len(c.Scripts.Live) != 0 {
			t.Fatal(err)
		}
		if fmt.Sprint(c.Sources) != "[x scripts]" {
			t.Errorf("sources %v", c.Sources)
		}
	})
	t.Run("must be there once it is named", func(t *testing.T) {
		_, err := conf.Load("x", conf.Options{Files: source.Map(map[string]string{"x": oneRoute + "[scripts]\ndir = \"lua\"\n"})})
		if err == nil || !strings.HasPrefix(err.Error(), "x:5: scripts.dir: cannot read lua: ") {
			t.Error(err)
		}
	})
	t.Run("every live script is a filter", func(t *testing.T) {
		c := load(t, oneRoute+"[filter.jwt]\nenabled = false\n[filter.second]\nscript = \"jwt\"\norder = 0\n")
		jwt, rate, second := c.Filter("jwt"), c.Filter("rate_limit"), c.Filter("second")
		if len(c.Filters) != 3 || jwt.Enabled || !jwt.Written || !rate.Enabled || rate.Written || rate.Pos.String() != "scripts/rate_limit.lua:1" {
			t.Errorf("%+v", c.Filters)
		}
		if second.Script != "jwt" || !second.HasOrder || second.Order != 0 || jwt.HasOrder {
			t.Errorf("%+v", second)
		}
	})
	t.Run("a script's name is a word", func(t *testing.T) {
		_, err := conf.Load("x", conf.Options{Files: source.Map(map[string]string{"x": oneRoute, "scripts/a b.lua": ""})})
		if err == nil || !strings.HasPrefix(err.Error(), `scripts/a b.lua:1: "a b" is no name of a script`) {
			t.Error(err)
		}
	})
}

func TestOverridesReplaceFirstListenerAndAdmin(t *testing.T) {
	o := world("x", "[[listener]]\naddress = \"127.0.0.1:1\"\n[[listener]]\naddress = \"127.0.0.1:2\"\n"+oneRoute)
	o.Listen, o.Admin = "127.0.0.1:0", "127.0.0.1:3"
	c, err := conf.Load("x", o)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listeners[0].Address != o.Listen || c.Listeners[1].Address != "127.0.0.1:2" || c.Admin.Address != o.Admin {
		t.Errorf("%v %v", c.Listeners, c.Admin)
	}
	o.Listen = "nowhere"
	if _, err := conf.Load("x", o); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Error(err)
	}
}

func TestWarnings(t *testing.T) {
	c := load(t, `
[admin]
address = "0.0.0.0:9180"
[[upstream]]
name = "weights"
endpoints = [{ url = "http://127.0.0.1:9001", weight = 3 }, { url = "http://127.0.0.1:9002", weight = 0 }]
[[upstream]]
name = "drained"
balance = "smooth_weighted"
endpoints = [{ url = "http://127.0.0.1:9001", weight = 0 }]
`+oneRoute)
	got := strings.ReplaceAll(c.Warnings.Error(), "x:", "")
	want := `3: admin.token: is empty and 0.0.0.0:9180 is not loopback, so only /metrics, /healthz and /readyz answer
6: upstream.weights.endpoints: the weight 3 of http://127.0.0.1:9001 counts for nothing with round_robin: use smooth_weighted or take it away
7: upstream.drained.endpoints: all weights are 0, so drained answers 503`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPosFindsKeysAndElseWhatIsAroundThem(t *testing.T) {
	c := load(t, "[http]\nmax_head = \"8KiB\"\n"+oneRoute+`path = "/a.b/**"
[route.filter.jwt]
skip = [
  "/a",
  { deep = 1 },
]
[[route]]
upstream = "http://127.0.0.1:9001"
path = "/v1.0/[x]"
`)
	for key, line := range map[string]int{
		"http":                              1,
		"http.max_head":                     2,
		"http.max_url":                      1,
		"admin.token":                       1,
		"route.all":                         3,
		"route.all.upstream":                5,
		"route.all.method":                  3,
		"route.all.filter.jwt":              7,
		"route.all.filter.jwt.skip[0]":      9,
		"route.all.filter.jwt.skip[1].deep": 10,
		"route.all.filter.jwt.skip[7]":      8,
		"route.all.filter.jwt.secret":       7,
		"route./v1.0/[x].upstream":          13,
		"route./v1.0/[x].path":              14,
		"nothing":                           1,
	} {
		if pos := c.Pos(key); pos != (conf.Pos{File: "x", Line: line}) {
			t.Errorf("%s in %s, want line %d", key, pos, line)
		}
	}
}

func TestRouteWithoutNameIsCalledByItsPath(t *testing.T) {
	c := load(t, "[[route]]\npath = \"/a/**\"\nupstream = \"http://127.0.0.1:1\"\n[[route]]\nupstream = \"http://127.0.0.1:1/\"\n")
	if c.Routes[0].Name != "/a/**" || c.Routes[1].Name != "/**" {
		t.Errorf("%q %q", c.Routes[0].Name, c.Routes[1].Name)
	}
	if len(c.Upstreams) != 1 || c.Routes[1].Upstream != "http://127.0.0.1:1" {
		t.Errorf("one URL makes %d upstreams", len(c.Upstreams))
	}
}

func TestPredicates(t *testing.T) {
	c := load(t, oneRoute+`
host = ["API.example.com", "*.example.org"]
method = "GET"
header = { X-V = "2", X-W = { one_of = ["a", "b"] }, X-X = { matches = "^x$" }, X-Y = { exists = true }, X-Z = { exists = false } }
body = { "a.b" = 5, c = true, d = 1.5, e = { one_of = [1, "1"] } }
client = ["10.1.2.3/8", "::1"]
time = { after = 2026-01-01T00:00:00+01:00, before = "2027-01-01T00:00:00Z", daily = "22:00-06:00", zone = "Europe/Berlin" }
`)
	r := c.Routes[0]
	for _, got := range []struct{ got, want string }{
		{fmt.Sprint(r.Hosts), "[api.example.com *.example.org]"},
		{fmt.Sprint(r.Methods), "[GET]"},
		{fmt.Sprint(r.Headers), `[X-V = "2" X-W one of "a", "b" X-X matches "^x$" X-Y exists X-Z is absent]`},
		{fmt.Sprint(r.Body), `[a.b = "5" c = "true" d = "1.5" e one of "1", "1"]`},
		{fmt.Sprint(r.Clients), "[10.0.0.0/8 ::1/128]"},
		{r.Time.String(), "after 2026-01-01T00:00:00+01:00 before 2027-01-01T00:00:00Z daily 22:00-06:00 Europe/Berlin"},
	} {
		if got.got != got.want {
			t.Errorf("got %s, want %s", got.got, got.want)
		}
	}
}

func TestStripAndRewrite(t *testing.T) {
	for text, want := range map[string]string{
		`path = "/a/**"` + "\nstrip_prefix = true":         "true",
		`path = "/a/**"` + "\nstrip_prefix = \"/a\"":       `"/a"`,
		`path = "/{x}/b/**"` + "\nstrip_prefix = \"/a/b\"": `"/a/b"`,
		`path_prefix = "/a"` + "\nstrip_prefix = \"/a/b\"": `"/a/b"`,
		`path_prefix = "/a"` + "\nstrip_prefix = 2":        "2",
		"strip_prefix = 2":     "2",
		"strip_prefix = false": "",
	} {
		if c := load(t, oneRoute+text+"\n"); c.Routes[0].Strip.String() != want {
			t.Errorf("%s: %s, want %s", text, c.Routes[0].Strip, want)
		}
	}
	for _, to := range []string{"/new/$1", "/new/${1}x", "/$name", "/$${name}", "/a$$b", "/cost$"} {
		c := load(t, oneRoute+`rewrite = { pattern = "^/(?P<name>[a-z]+)", to = "`+to+"\" }\n")
		if got := c.Routes[0].Rewrite.To; got != strings.Replace(to, "$${", "${", 1) {
			t.Errorf("%s is read as %s", to, got)
		}
	}
}

func TestLimiters(t *testing.T) {
	c := load(t, oneRoute+`
[limiter.whole]
rate = 1
[limiter.float]
rate = 1.0
[limiter.tenth]
rate = 0.1
burst = 1.0
[limiter.minute]
rate = "100/m"
`)
	for name, want := range map[string]string{"whole": "1/s 1", "float": "1/s 1", "tenth": "1/10s 1", "minute": "100/m 100"} {
		if l := c.Limiter(name); fmt.Sprint(l.Rate, l.Burst) != want {
			t.Errorf("%s: %v %d, want %s", name, l.Rate, l.Burst, want)
		}
	}
	whole, float := *c.Limiter("whole"), *c.Limiter("float")
	if float.Name = whole.Name; !whole.Equal(float) {
		t.Error("1 and 1.0 are different rates")
	}
}
