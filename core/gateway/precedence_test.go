package gateway_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// precedence is pairs of routes that both take a request, unless not says that the second alone does, and the request: the first has to have it.
var precedence = map[string]struct {
	first, second string
	target, host  string
	lines         []string
	not           bool // the request is not the first's
}{
	"an exact host before a wildcard, whatever else": {first: `host = "a.one.test"` + "\n" + `path = "/**"`,
		second: `host = "*.one.test"` + "\n" + `path = "/p"` + "\nmethod = \"GET\"\npriority = 9", target: "/p", host: "a.one.test"},
	"a host in another case, with a port and a dot": {first: `host = "a.two.test"`, second: `host = "*.two.test"`, target: "/p", host: "A.Two.TEST.:8080"},
	"a longer wildcard before a shorter":            {first: `host = "*.b.three.test"`, second: `host = "*.three.test"` + "\n" + `path = "/p"`, target: "/p", host: "a.b.three.test"},
	"a wildcard of any depth":                       {first: `host = "*.four.test"`, second: `path = "/four"`, target: "/four", host: "a.b.c.four.test"},
	"a wildcard is not its own suffix":              {first: `host = "*.five.test"`, second: `path = "/five"`, target: "/five", host: "five.test", not: true},
	"any host before none, whatever the path":       {first: `host = "six.test"` + "\n" + `path = "/**"`, second: `path = "/six"` + "\nmethod = \"GET\"", target: "/six", host: "six.test"},
	"an exact path before a prefix": {first: `path = "/seven/a"`, second: `path_prefix = "/seven"` + "\nmethod = \"GET\"\npriority = 9\n" +
		`header = { X-A = "1" }`, target: "/seven/a", lines: []string{"X-A", "1"}},
	"a longer prefix before a shorter":                {first: `path_prefix = "/eight/a"`, second: `path_prefix = "/eight"` + "\nmethod = \"GET\"", target: "/eight/a/b"},
	"a prefix is whole segments":                      {first: `path_prefix = "/v9"`, second: `path = "/v9example"`, target: "/v9example", not: true},
	"a literal before a name, in the first place":     {first: `path = "/ten/a/*"`, second: `path = "/ten/{x}/b"`, target: "/ten/a/b"},
	"a name before a star":                            {first: `path = "/eleven/{x}"`, second: `path = "/eleven/*"`, target: "/eleven/a"},
	"a prefix before an expression":                   {first: `path_prefix = "/twelve"`, second: `path_regex = "^/twelve/a$"`, target: "/twelve/a"},
	"an expression before any depth":                  {first: `path_regex = "^/thirteen/"`, second: `path = "/**/a13"`, target: "/thirteen/a13"},
	"a trailing slash counts":                         {first: `path = "/fourteen/"`, second: `path = "/fourteen"`, target: "/fourteen", not: true},
	"two predicates before one with a priority":       {first: `path = "/a15"` + "\nmethod = \"GET\"\n" + `query = { q = "1" }`, second: `path = "/a15"` + "\npriority = 9\n" + `header = { X-A = "1" }`, target: "/a15?q=1", lines: []string{"X-A", "1"}},
	"of as many predicates, the priority":             {first: `path = "/a16"` + "\npriority = 1\n" + `cookie = { c = "1" }`, second: `path = "/a16"` + "\nmethod = \"GET\"", target: "/a16", lines: []string{"Cookie", "c=1"}},
	"of one priority, the method":                     {first: `path = "/a17"` + "\nmethod = \"GET\"", second: `path = "/a17"` + "\n" + `header = { X-A = "1" }`, target: "/a17", lines: []string{"X-A", "1"}},
	"then more headers":                               {first: `path = "/a18"` + "\n" + `header = { X-A = "1", X-B = "1" }`, second: `path = "/a18"` + "\n" + `header = { X-A = "1" }` + "\n" + `query = { q = "1" }`, target: "/a18?q=1", lines: []string{"X-A", "1", "X-B", "1"}},
	"then more of the query":                          {first: `path = "/a19"` + "\n" + `query = { q = "1" }`, second: `path = "/a19"` + "\n" + `cookie = { c = "1" }`, target: "/a19?q=1", lines: []string{"Cookie", "c=1"}},
	"a header's name has any case":                    {first: `path = "/a20"` + "\n" + `header = { x-KIND = "v" }`, second: `path = "/a20"`, target: "/a20", lines: []string{"X-Kind", "v"}},
	"a header's value is exact":                       {first: `path = "/a21"` + "\n" + `header = { X-Kind = "v" }`, second: `path = "/a21"`, target: "/a21", lines: []string{"X-Kind", "V"}, not: true},
	"the first value of the query counts":             {first: `path = "/a22"` + "\n" + `query = { q = "b" }`, second: `path = "/a22"` + "\n" + `query = { q = "a" }`, target: "/a22?q=b&q=a"},
	"a method is exact":                               {first: `path = "/a23"` + "\nmethod = \"HEAD\"", second: `path = "/a23"`, target: "/a23", not: true},
	"an encoded letter is the letter":                 {first: `path = "/a24"`, second: `path = "/**"` + "\nmethod = \"GET\"\n" + `header = { X-A = "24" }`, target: "/%61%32%34", lines: []string{"X-A", "24"}},
	"a segment's parameters are not looked at":        {first: `path = "/a25/b"`, second: `path = "/**"` + "\nmethod = \"GET\"\n" + `header = { X-A = "25" }`, target: "/a25;v=1/b;w", lines: []string{"X-A", "25"}},
	"an encoded slash is none":                        {first: `path = "/a26/b"`, second: `path = "/*"` + "\n" + `header = { X-A = "26" }`, target: "/a26%2Fb", lines: []string{"X-A", "26"}, not: true},
	"a segment that begins like another is different": {first: `path = "/a27/**"`, second: `path_prefix = "/a27b"`, target: "/a27b/c", not: true},
}

// TestTheMostSpecificRouteHasTheRequestOnEveryWayIn: wherever it stands in the file.
func TestTheMostSpecificRouteHasTheRequestOnEveryWayIn(t *testing.T) {
	named := func(name string) string {
		return upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) })
	}
	first, second := named("first"), named("second")
	var routes []string
	for name, c := range precedence {
		name = strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name)
		routes = append(routes, fmt.Sprintf("[[route]]\nname = %q\nupstream = %q\n%s\n", name+"-1", first, c.first),
			fmt.Sprintf("[[route]]\nname = %q\nupstream = %q\n%s\n", name+"-2", second, c.second))
	}
	slices.Sort(routes)
	for _, order := range []string{"as written", "reversed"} {
		h := open(t, twoDoors+strings.Join(routes, ""))
		for _, l := range h.legs() {
			for name, c := range precedence {
				want := "first"
				if c.not {
					want = "second"
				}
				if got := l.at(t, c.host, c.target, c.lines); got != want {
					t.Errorf("%s, %s: %s: the %s had it", order, l.name, name, got)
				}
			}
		}
		slices.Reverse(routes)
	}
}

// at asks for a target at a host, which is not the one that is connected to.
func (l leg) at(t *testing.T, host, target string, lines []string) string {
	t.Helper()
	base, err := url.Parse(l.base)
	if err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(target, "?")
	r := (&http.Request{Method: "GET", Host: host, Header: http.Header{}, URL: &url.URL{Scheme: base.Scheme, Host: base.Host, Opaque: path, RawQuery: query}}).WithContext(t.Context())
	for i := 0; i < len(lines); i += 2 {
		r.Header.Add(lines[i], lines[i+1])
	}
	resp, err := l.client.Do(r)
	if err != nil {
		t.Fatalf("%s: %s: %v", l.name, target, err)
	}
	defer resp.Body.Close()
	b := make([]byte, 100)
	n, _ := resp.Body.Read(b)
	return fmt.Sprintf("%.*s", n, b)
}
