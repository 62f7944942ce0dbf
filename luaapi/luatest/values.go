package luatest

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// requestOf reads the table of t.request.
func requestOf(a vm.Args, t *lua.LTable) Request {
	r := Request{}
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		switch name := key.String(); name {
		case "method":
			r.Method = v.String()
		case "path":
			r.Target = v.String()
		case "headers":
			r.Headers = linesOf(a, v)
		case "body":
			r.Body = v.String()
		case "client_ip":
			r.ClientIP = v.String()
		case "host":
			r.Host = v.String()
		case "params":
			r.Params = map[string]string{}
			for _, line := range linesOf(a, v) {
				r.Params[line[0]] = line[1]
			}
		case "tls":
			r.TLS = tlsOf(a, v)
		default:
			a.Raise("a request has no %s: it has method, path, headers, body, client_ip, host, params, tls", name)
		}
	}
	return r
}

// tlsOf is a connection with a client's certificate.
func tlsOf(a vm.Args, v lua.LValue) *core.TLSInfo {
	info := &core.TLSInfo{Version: "TLS 1.3"}
	for _, line := range linesOf(a, v) {
		switch line[0] {
		case "subject":
			info.ClientSubject = line[1]
		case "fingerprint":
			info.ClientFingerprint = line[1]
		case "san":
			info.ClientSANs = append(info.ClientSANs, line[1])
		default:
			a.Raise("a certificate has no %s: it has subject, fingerprint, san", line[0])
		}
	}
	return info
}

func answerOf(a vm.Args, t *lua.LTable) Answer {
	answer := Answer{Status: 200}
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		switch name := key.String(); name {
		case "status":
			n, _ := v.(lua.LNumber)
			answer.Status = int(n)
		case "headers":
			answer.Headers = linesOf(a, v)
		case "body":
			answer.Body = v.String()
		default:
			a.Raise("an answer has no %s: it has status, headers, body", name)
		}
	}
	return answer
}

// linesOf reads { name = "value" or { "value", "value" } }.
func linesOf(a vm.Args, v lua.LValue) (lines [][2]string) {
	t, ok := v.(*lua.LTable)
	if !ok {
		a.Raise("headers are a table of names and values")
	}
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		list, ok := v.(*lua.LTable)
		if !ok {
			lines = append(lines, [2]string{key.String(), text(v)})
			continue
		}
		for i := 1; i <= list.MaxN(); i++ {
			lines = append(lines, [2]string{key.String(), text(list.RawGetInt(i))})
		}
	}
	return lines
}

func text(v lua.LValue) string {
	if n, ok := v.(lua.LNumber); ok {
		return vm.NumberText(float64(n))
	}
	return v.String()
}

func newTable() *lua.LTable { return &lua.LTable{Metatable: lua.LNil} }

// resultTable is what t.request gives.
func resultTable(a Answer, f *Forwarded, lines []string) *lua.LTable {
	t := newTable()
	t.RawSetString("status", lua.LNumber(a.Status))
	t.RawSetString("headers", headerTable(a.Headers))
	t.RawSetString("body", lua.LString(a.Body))
	t.RawSetString("source", lua.LString(a.Source))
	if a.Err != nil {
		t.RawSetString("error", lua.LString(a.Err.Error()))
	}
	if f != nil {
		t.RawSetString("forwarded", forwardedTable(f))
	}
	list := newTable()
	for _, line := range lines {
		list.Append(lua.LString(line))
	}
	t.RawSetString("lines", list)
	return t
}

func forwardedTable(f *Forwarded) *lua.LTable {
	t := newTable()
	for name, value := range map[string]string{"upstream": f.Upstream, "endpoint": f.Endpoint, "method": f.Method, "path": f.Path,
		"query": f.Query, "host": f.Host, "body": f.Body} {
		t.RawSetString(name, lua.LString(value))
	}
	t.RawSetString("headers", headerTable(f.Headers))
	return t
}

// headerTable is looked up in any case; a name that was sent several times gives its first line, and "NAME[2]" the second.
func headerTable(lines [][2]string) *lua.LTable {
	t := newTable()
	count := map[string]int{}
	for _, line := range lines {
		name := strings.ToLower(line[0])
		if count[name]++; count[name] > 1 {
			name += "[" + strconv.Itoa(count[name]) + "]"
		}
		t.RawSetString(name, lua.LString(line[1]))
	}
	meta := newTable()
	meta.RawSetString("__index", &lua.LFunction{IsG: true, GFunction: func(L *lua.LState) int {
		name, _ := L.Get(2).(lua.LString)
		L.Push(t.RawGetString(strings.ToLower(string(name))))
		return 1
	}})
	t.Metatable = meta
	return t
}

// goValue turns a claim into what encoding/json takes.
func goValue(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return float64(v)
	case lua.LBool:
		return bool(v)
	case *lua.LTable:
		if n := v.MaxN(); n > 0 {
			items := make([]any, n)
			for i := range items {
				items[i] = goValue(v.RawGetInt(i + 1))
			}
			return items
		}
		members := map[string]any{}
		for key, item := v.Next(lua.LNil); key != lua.LNil; key, item = v.Next(key) {
			members[key.String()] = goValue(item)
		}
		return members
	}
	return nil
}

func same(x, y lua.LValue, depth int) bool {
	s, ok := x.(*lua.LTable)
	t, both := y.(*lua.LTable)
	if !ok || !both {
		return x == y
	}
	if depth > 50 {
		return s == t
	}
	for _, pair := range [][2]*lua.LTable{{s, t}, {t, s}} {
		for key, v := pair[0].Next(lua.LNil); key != lua.LNil; key, v = pair[0].Next(key) {
			if !same(v, pair[1].RawGet(key), depth+1) {
				return false
			}
		}
	}
	return true
}

func show(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		return strconv.Quote(string(v))
	case *lua.LTable:
		var parts []string
		for key, item := v.Next(lua.LNil); key != lua.LNil && len(parts) < 20; key, item = v.Next(key) {
			if nested, ok := item.(*lua.LTable); ok {
				parts = append(parts, fmt.Sprintf("%s = {%d items}", text(key), nested.Len()))
			} else {
				parts = append(parts, text(key)+" = "+show(item))
			}
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return text(v)
}

// remark is an optional argument that says what was compared.
func remark(a vm.Args, i int) string {
	if !a.Has(i) {
		return ""
	}
	return a.String(i) + ": "
}
