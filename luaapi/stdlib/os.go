package stdlib

import (
	"math"
	"time"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func osFuncs() []vm.Func {
	start := time.Now()
	return []vm.Func{
		{Name: "os.time", Doc: "Seconds since 1970, now or of a date: a table with year, month, day and perhaps hour (default 12), min, sec, in local time.",
			Params: params(opt("date", "table")), Returns: params(param("seconds", "integer")), Do: osTime},
		{Name: "os.date", Doc: "A time (default now) as text after strftime's format, in local time or with \"!\" in front in UTC; \"*t\" gives a table.",
			Params: params(opt("format", "string"), opt("seconds", "number")), Returns: params(param("date", "string|table")), Do: osDate},
		{Name: "os.clock", Doc: "Seconds of a monotonic clock, for measuring.", Returns: params(param("seconds", "number")),
			Do: func(a vm.Args) int { return push(a, time.Since(start).Seconds()) }},
		{Name: "os.difftime", Doc: "Seconds from one time to another.", Params: params(param("to", "number"), opt("from", "number")),
			Returns: params(param("seconds", "number")),
			Do:      func(a vm.Args) int { return push(a, a.Number(1)-a.OptNumber(2, 0)) }},
	}
}

func osTime(a vm.Args) int {
	if !a.Has(1) {
		return push(a, float64(time.Now().Unix()))
	}
	t := a.Readable(1)
	field := func(name string, or int) int {
		f, ok := vm.ToNumber(t.RawGetString(name))
		if !ok {
			if or < 0 {
				a.Raise("field '%s' missing in date table", name)
			}
			return or
		}
		if math.IsNaN(f) || math.Abs(f) > math.MaxInt32 {
			a.Raise("field '%s' is out of bounds", name)
		}
		return int(f)
	}
	at := time.Date(field("year", -1), time.Month(field("month", -1)), field("day", -1),
		field("hour", 12), field("min", 0), field("sec", 0), 0, time.Local)
	return push(a, float64(at.Unix()))
}

func osDate(a vm.Args) int {
	format := a.OptString(1, "%c")
	at := time.Now()
	if a.Has(2) {
		seconds := a.Number(2)
		if math.IsNaN(seconds) || math.Abs(seconds) > 1<<40 {
			a.Bad(2, "time out of bounds")
		}
		at = time.Unix(int64(seconds), 0)
	}
	if len(format) > 0 && format[0] == '!' {
		format, at = format[1:], at.UTC()
	}
	if len(format) >= 2 && format[:2] == "*t" {
		a.L.Push(dateTable(at))
		return 1
	}
	a.VM.Charge(len(format))
	b := strftime(make([]byte, 0, len(format)+32), format, at, a.VM.Base().Limits().String)
	a.CheckString(len(b))
	a.L.Push(taken(b))
	return 1
}

func dateTable(at time.Time) *lua.LTable {
	t := &lua.LTable{Metatable: lua.LNil}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"sec", at.Second()}, {"min", at.Minute()}, {"hour", at.Hour()}, {"day", at.Day()}, {"month", int(at.Month())},
		{"year", at.Year()}, {"wday", int(at.Weekday()) + 1}, {"yday", at.YearDay()},
	} {
		t.RawSetString(f.name, lua.LNumber(f.value))
	}
	t.RawSetString("isdst", lua.LBool(at.IsDST()))
	return t
}
