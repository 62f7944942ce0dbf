package luaapi

import (
	"math"
	"net/http"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// gw.time: seconds since 1970 and their texts.

var timeFuncs = []vm.Func{
	{Name: "gw.time.now",
		Doc:     "Seconds since 1970 (UTC) with their fraction.",
		Returns: list(p("seconds", "number", "")),
		Do: func(a vm.Args) int {
			a.L.Push(lua.LNumber(float64(time.Now().UnixMicro()) / 1e6))
			return 1
		}},
	{Name: "gw.time.monotonic",
		Doc:     "Seconds of a clock that never goes back; only differences mean something.",
		Returns: list(p("seconds", "number", "")),
		Do: func(a vm.Args) int {
			a.L.Push(lua.LNumber(time.Since(started).Seconds()))
			return 1
		}},
	{Name: "gw.time.format",
		Doc:     "Writes a moment as text, in UTC.",
		Params:  list(p("seconds", "number", ""), opt("form", `"rfc3339"|"http"|string`, "default rfc3339; http is the form of headers; else a layout of Go, such as `2006-01-02`")),
		Returns: list(p("text", "string", "")),
		Do: func(a vm.Args) int {
			s := a.Number(1)
			if !(math.Abs(s) < 2e11) {
				a.Bad(1, "seconds since 1970 expected")
			}
			whole, fraction := math.Modf(s)
			t := time.Unix(int64(whole), int64(fraction*1e9)).UTC().Round(time.Microsecond)
			a.L.Push(lua.LString(t.Format(layout(a.OptString(2, "rfc3339")))))
			return 1
		}},
	{Name: "gw.time.parse",
		Doc:     "Reads a moment's text; without a zone it is UTC.",
		Params:  list(p("text", "string", ""), opt("form", `"rfc3339"|"http"|string`, "as in gw.time.format")),
		Returns: list(p("seconds", "number?", ""), errParam),
		Do: func(a vm.Args) int {
			text, form := argText(a, 1), a.OptString(2, "rfc3339")
			t, err := time.Parse(layout(form), text)
			if form == "http" {
				t, err = http.ParseTime(text)
			}
			if err != nil {
				return a.Fail("%s is no time of the form %s", describe(lua.LString(visible(text))), form)
			}
			a.L.Push(lua.LNumber(float64(t.UnixMicro()) / 1e6))
			return 1
		}},
	everyFunc,
}

var started = time.Now()

func layout(form string) string {
	switch form {
	case "rfc3339":
		return time.RFC3339Nano
	case "http":
		return http.TimeFormat
	}
	return form
}
