package luatest

import (
	"errors"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// tomlValue writes a Lua value as TOML would have it in a configuration.
func tomlValue(v lua.LValue) (string, error) {
	switch v := v.(type) {
	case lua.LString:
		return tomlString(string(v)), nil
	case lua.LNumber:
		return vm.NumberText(float64(v)), nil
	case lua.LBool:
		return v.String(), nil
	case *lua.LTable:
		return tomlTable(v)
	}
	return "", errors.New("a " + v.Type().String() + " is no setting")
}

func tomlTable(t *lua.LTable) (string, error) {
	var parts []string
	if n := t.MaxN(); n > 0 {
		for i := 1; i <= n; i++ {
			item, err := tomlValue(t.RawGetInt(i))
			if err != nil {
				return "", err
			}
			parts = append(parts, item)
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	}
	pairs, err := tomlPairs(t)
	if len(pairs) == 0 {
		return "[]", err
	}
	return "{ " + strings.Join(pairs, ", ") + " }", err
}

// tomlPairs gives the members of a table as "key = value".
func tomlPairs(t *lua.LTable) ([]string, error) {
	var pairs []string
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		name, ok := key.(lua.LString)
		if !ok {
			return nil, errors.New("settings have names")
		}
		value, err := tomlValue(v)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, tomlString(string(name))+" = "+value)
	}
	return pairs, nil
}

func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteString(`\u` + strconv.FormatInt(int64(r)+0x10000, 16)[1:])
		default:
			b.WriteRune(r)
		}
	}
	return strings.ReplaceAll(b.String(), "${", "$${") + `"`
}
