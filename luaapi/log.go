package luaapi

import (
	"context"
	"log/slog"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// gw.log: lines of scripts in the gateway's log.

var logFuncs = []vm.Func{
	logFunc("debug", slog.LevelDebug, "Writes a line for who debugs a filter."),
	logFunc("info", slog.LevelInfo, "Writes a line about what is worth knowing."),
	logFunc("warn", slog.LevelWarn, "Writes a line about what should be looked at."),
	logFunc("error", slog.LevelError, "Writes a line about what went wrong."),
}

func logFunc(name string, level slog.Level, doc string) vm.Func {
	return vm.Func{Name: "gw.log." + name,
		Doc: doc + " During a request it carries request_id and trace_id. Values of settings of the type secret are masked wherever they stand, and so are fields called " +
			"`authorization`, `cookie`, `password`, `secret`, `token`, `api_key` and the like, or as `[log] mask` says, also within tables.",
		Params: list(p("message", "string", "three or four words"),
			opt("fields", "table<string, any>", "facts")),
		Do: func(a vm.Args) int {
			w := worldOf(a.VM)
			message := clipped(w.mask.text(argText(a, 1)))
			var fields *lua.LTable
			if a.Has(2) {
				fields = a.Readable(2)
			}
			if !w.log.Enabled(context.Background(), level) {
				return 0
			}
			attrs := frameAttrs(a.VM)
			if fields != nil {
				attrs = append(attrs, fieldAttrs(a, w.mask, fields)...)
			}
			a.VM.Grow(len(message))
			w.log.LogAttrs(context.Background(), level, message, attrs...)
			return 0
		}}
}

// frameAttrs say where a line comes from.
func frameAttrs(v *vm.VM) []slog.Attr {
	if run, ok := v.Slot.(*timerRun); ok {
		return run.attrs()
	}
	f, _ := v.Slot.(*frame)
	if f == nil || f.x == nil {
		return nil
	}
	attrs := make([]slog.Attr, 0, 8)
	if f.turn != nil {
		attrs = append(attrs, slog.String("stage", f.turn.filter.stage), slog.String("script", f.turn.filter.name))
	}
	return append(attrs, slog.String("request_id", string(f.x.RequestID)), slog.String("trace_id", string(f.x.TraceID)))
}

func fieldAttrs(a vm.Args, mask *masker, fields *lua.LTable) (attrs []slog.Attr) {
	for key, v := fields.Next(lua.LNil); key != lua.LNil; key, v = fields.Next(key) {
		name, ok := text(key)
		if !ok {
			a.Bad(2, "fields have names, not %s", describe(key))
		}
		if len(attrs) >= maxFields {
			a.Bad(2, "more than %d fields", maxFields)
		}
		if mask.hides(name) {
			v = lua.LString(maskText)
		}
		attrs = append(attrs, slog.Any(clipped(mask.text(name)), logValue(v, mask)))
	}
	return attrs
}

// logValue gives a Lua value as a log line shows it; whole numbers stay whole.
func logValue(v lua.LValue, mask *masker) any {
	switch v := v.(type) {
	case lua.LString:
		return clipped(mask.text(string(v)))
	case lua.LBool:
		return bool(v)
	case lua.LNumber:
		if n := int64(v); lua.LNumber(n) == v {
			return n
		}
		return vm.NumberText(float64(v))
	}
	out, err := encodeMasked(nil, v, maxLogged, mask)
	if err != nil {
		return describe(v) + " (" + err.Error() + ")"
	}
	return string(out)
}

// maxFields is how many facts a line may have.
const maxFields = 64

// maxLogged is how much of one text a line shows.
const maxLogged = 16 << 10

func clipped(s string) string {
	if len(s) > maxLogged {
		return s[:maxLogged] + "..."
	}
	return s
}

// printed is a line of print.
func printed(log *slog.Logger, v *vm.VM, text string) {
	log.LogAttrs(context.Background(), slog.LevelInfo, clipped(worldOf(v).mask.text(text)), frameAttrs(v)...)
}
