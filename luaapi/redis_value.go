package luaapi

import (
	"errors"
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/luaapi/vm"
)

var (
	errRedisDeep = errors.New("the answer is nested deeper than 100")
	errRedisLong = errors.New("the answer has more than 65535 items: ask for less at once")
)

// luaAnswer gives an answer of Redis as scripts see it; absent stands for what is not there.
func luaAnswer(a vm.Args, v redis.Value, absent lua.LValue, depth int) (lua.LValue, error) {
	a.VM.Charge(4)
	switch v.Kind {
	case redis.Int:
		return luaInteger(v.Int), nil
	case redis.Text:
		a.VM.Grow(len(v.Text))
		return lua.LString(v.Text), nil
	case redis.Bool:
		return lua.LBool(v.Int != 0), nil
	case redis.Double:
		return number(v.Float), nil
	case redis.Failure:
		t := newTable()
		t.RawSetString("err", lua.LString(visible(v.Text)))
		return t, nil
	case redis.List, redis.Map:
		switch {
		case depth >= maxJSONDepth:
			return nil, errRedisDeep
		case len(v.List) >= lua.MaxArrayIndex:
			return nil, errRedisLong
		case v.Kind == redis.Map:
			return luaFields(a, v.List, depth)
		}
		return luaItems(a, v.List, depth)
	}
	return absent, nil
}

// luaInteger is a whole number, or its digits where a float would lose some.
func luaInteger(n int64) lua.LValue {
	if n > 1<<53 || n < -1<<53 {
		return luaNumber(strconv.FormatInt(n, 10))
	}
	return number(float64(n))
}

func luaItems(a vm.Args, items []redis.Value, depth int) (lua.LValue, error) {
	t := newTable()
	t.Metatable = jsonArray // an empty list stays one
	for i, item := range items {
		value, err := luaAnswer(a, item, jsonNull, depth+1)
		if err != nil {
			return nil, err
		}
		t.RawSetInt(i+1, value)
	}
	return t, nil
}

// luaFields makes a table of fields and values in turn.
func luaFields(a vm.Args, items []redis.Value, depth int) (lua.LValue, error) {
	t := newTable()
	for i := 0; i+1 < len(items); i += 2 {
		key, err := luaAnswer(a, items[i], jsonNull, depth+1)
		if err != nil {
			return nil, err
		}
		value, err := luaAnswer(a, items[i+1], jsonNull, depth+1)
		if err != nil {
			return nil, err
		}
		if n, ok := key.(lua.LNumber); ok && math.IsNaN(float64(n)) {
			continue
		}
		t.RawSet(key, value)
	}
	return t, nil
}
