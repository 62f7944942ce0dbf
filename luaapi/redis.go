package luaapi

import (
	"context"
	"crypto/sha1" // #nosec: the name that Redis gives to scripts
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.redis: the Redis servers of [redis.NAME].

const redisAnswers = " What Redis has not is nil, without err; in a list it is gw.json.null. A hash is a table by its fields, a number that a float cannot hold " +
	"keeps its digits. When Redis cannot be asked within its `timeout`, or says no, the result is nil and err; nothing is sent twice. " +
	"`{ \"main\", timeout = 0.02 }` instead of `\"main\"` waits no longer than that."

var (
	redisParam   = p("redis", "string|gw.Redis", "NAME of a `[redis.NAME]`; or a table of it and `timeout` (seconds, or a text such as \"50ms\"), when that is shorter")
	redisResults = list(p("value", "any", ""), errParam)
)

var redisFuncs = []vm.Func{
	{Name: "gw.redis.call", Phases: phaseRun,
		Doc: "Sends one command. Those that wait, subscribe, or change a connection that others share, and those that administrate the server, raise." +
			redisAnswers,
		Params:  list(redisParam, p("command", "string", "such as `GET`"), opt("...", "string|number", "its arguments")),
		Returns: redisResults,
		Do: func(a vm.Args) int {
			to := redisArg(a)
			args := make([]string, 0, a.Len()-1)
			for i := 2; i <= max(a.Len(), 2); i++ {
				args = append(args, redisText(a, i, a.Get(i)))
			}
			permit(a, args[0])
			return askRedis(a, to, func(ctx context.Context) (redis.Value, error) { return to.client.DoWithin(ctx, args...) })
		}},
	{Name: "gw.redis.pipeline", Phases: phaseRun,
		Doc: "Sends several commands in one go and gives their answers in order. They are no transaction: others may come between them. A command that " +
			"Redis refuses has gw.json.null for an answer, and err tells of the first one." + redisAnswers,
		Params:  list(redisParam, p("commands", "(string|number)[][]", `such as { { "INCR", "n" }, { "EXPIRE", "n", 60 } }`)),
		Returns: list(p("answers", "any[]?", ""), errParam),
		Do:      redisPipeline},
	{Name: "gw.redis.eval", Phases: phaseRun,
		Doc: "Runs a script in Redis, where nothing comes between what it does. It goes there as a whole once; after that its digest does." +
			redisAnswers,
		Params: list(redisParam, p("script", "string", "Lua, with KEYS and ARGV"), opt("keys", "string[]", "in a Cluster they share a hash tag"),
			opt("args", "(string|number)[]", "")),
		Returns: redisResults,
		Do:      redisEval},
}

// notForScripts are commands that administrate a server, or keep it busy for long.
var notForScripts = map[string]string{
	"KEYS": "use SCAN", "FLUSHALL": "", "FLUSHDB": "", "SWAPDB": "", "CONFIG": "", "ACL": "", "MODULE": "", "CLUSTER": "", "SAVE": "", "BGSAVE": "", "BGREWRITEAOF": "",
	"REPLICAOF": "", "SLAVEOF": "", "LATENCY": "", "SLOWLOG": "", "MIGRATE": "", "RESTORE-ASKING": "", "EVALSHA": "use gw.redis.eval", "FUNCTION": "", "SCRIPT": "use gw.redis.eval",
}

const (
	// redisArguments is how many arguments a command, and redisCommands how many commands a pipeline may have.
	redisArguments = 10_000
	redisCommands  = 1000
)

// asked is the Redis that a script asks, and how long it waits at most; 0: as long as the Redis's own limit.
type asked struct {
	client  *redis.Client
	timeout time.Duration
}

func redisArg(a vm.Args) (to asked) {
	name := ""
	if t, ok := a.Get(1).(*lua.LTable); ok {
		name = to.read(a, a.VM.Readable(t))
	} else {
		name = argText(a, 1)
	}
	w := worldOf(a.VM)
	if to.client = w.redis.Get(name); to.client == nil {
		known := "no Redis is configured"
		if names := w.redis.Names(); len(names) > 0 {
			known = "there are " + strings.Join(names, ", ")
		}
		a.Bad(1, "there is no [redis.%s]: %s", visible(name), known)
	}
	return to
}

// read reads a table of a name and a timeout.
func (to *asked) read(a vm.Args, t *lua.LTable) (name string) {
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		wrong := ""
		switch key {
		case lua.LNumber(1):
			name, _ = text(v)
		case lua.LString("timeout"):
			if to.timeout, wrong = durationOf(v); wrong != "" || to.timeout <= 0 {
				a.Bad(1, `a timeout in seconds above 0, or a text such as "50ms", expected, got %s`, describe(v))
			}
		default:
			a.Bad(1, `there is no %s: write { "NAME", timeout = "50ms" }`, describe(key))
		}
	}
	return name
}

// permit raises for commands that scripts do not get.
func permit(a vm.Args, command string) {
	name := strings.ToUpper(command)
	if hint, is := notForScripts[name]; is {
		a.Raise("%s", strings.TrimSuffix(name+" is not for scripts: "+hint, ": "))
	}
}

// redisText is a part of a command.
func redisText(a vm.Args, i int, v lua.LValue) string {
	s, ok := text(v)
	if !ok {
		a.Bad(i, "strings and numbers expected, got %s", v.Type())
	}
	a.VM.Charge(1 + len(s)>>6)
	return s
}

// redisTexts are the items of a list.
func redisTexts(a vm.Args, i int, v lua.LValue) []string {
	t, ok := v.(*lua.LTable)
	if !ok {
		a.Bad(i, "a list of strings and numbers expected, got %s", v.Type())
	}
	t = a.VM.Readable(t)
	n := t.Len()
	if n > redisArguments {
		a.Bad(i, "more than %d items", redisArguments)
	}
	list := make([]string, n)
	for k := range list {
		list[k] = redisText(a, i, t.RawGetInt(k+1))
	}
	return list
}

func optRedisTexts(a vm.Args, i int) []string {
	if !a.Has(i) {
		return nil
	}
	return redisTexts(a, i, a.Get(i))
}

// within runs do while the VM waits, for no longer than the script says and the request has.
func (to *asked) within(a vm.Args, do func(ctx context.Context)) error {
	if to.timeout == 0 && hasPatience(a, to.client.Timeout()) {
		return briefly(a, func() { do(context.Background()) })
	}
	return outside(a, to.timeout, do)
}

// askRedis asks while the VM waits, and gives the answer to the script.
func askRedis(a vm.Args, to asked, do func(ctx context.Context) (redis.Value, error)) int {
	var v redis.Value
	var err error
	if busy := to.within(a, func(ctx context.Context) { v, err = do(ctx) }); busy != nil {
		err = busy
	}
	if err != nil {
		return redisFailed(a, err)
	}
	out, err := luaAnswer(a, v, lua.LNil, 0)
	if err != nil {
		return a.Fail("%s", err)
	}
	a.L.Push(out)
	return 1
}

// redisFailed tells a script why there is no answer. What can never be sent is the script's own fault.
func redisFailed(a vm.Args, err error) int {
	if wrong, ok := errors.AsType[*redis.CommandError](err); ok {
		a.Raise("%s", wrong)
	}
	return a.Fail("%s", visible(err.Error()))
}

func redisPipeline(a vm.Args) int {
	to := redisArg(a)
	t := a.Readable(2)
	n := t.Len()
	if n > redisCommands {
		a.Bad(2, "more than %d commands", redisCommands)
	}
	commands := make([][]string, n)
	for i := range commands {
		if commands[i] = redisTexts(a, 2, t.RawGetInt(i+1)); len(commands[i]) == 0 {
			a.Bad(2, "command %d is empty", i+1)
		}
		permit(a, commands[i][0])
	}
	if n == 0 {
		a.L.Push(newTable())
		return 1
	}
	var results []redis.Result
	var err error
	if busy := to.within(a, func(ctx context.Context) { results, err = to.client.PipelineWithin(ctx, commands...) }); busy != nil {
		err = busy
	}
	if err != nil {
		return redisFailed(a, err)
	}
	return pushResults(a, results)
}

func pushResults(a vm.Args, results []redis.Result) int {
	answers, failed := newTable(), ""
	for i, r := range results {
		value, err := lua.LValue(jsonNull), r.Err
		if err == nil {
			value, err = luaAnswer(a, r.Value, jsonNull, 0)
		}
		if err != nil {
			if value = jsonNull; failed == "" {
				failed = "command " + strconv.Itoa(i+1) + ": " + visible(err.Error())
			}
		}
		answers.RawSetInt(i+1, value)
	}
	a.L.Push(answers)
	if failed == "" {
		return 1
	}
	a.L.Push(lua.LString(failed))
	return 2
}

func redisEval(a vm.Args) int {
	to, script := redisArg(a), argText(a, 2)
	keys, args := optRedisTexts(a, 3), optRedisTexts(a, 4)
	sum := sha1.Sum([]byte(script))
	a.VM.Charge(len(script) >> 4)
	command := slices.Concat([]string{"EVALSHA", hex.EncodeToString(sum[:]), strconv.Itoa(len(keys))}, keys, args)
	return askRedis(a, to, func(ctx context.Context) (redis.Value, error) {
		v, err := to.client.DoWithin(ctx, command...)
		if said, ok := errors.AsType[*redis.ServerError](err); ok && strings.HasPrefix(said.Message, "NOSCRIPT") { // it did not run
			command[0], command[1] = "EVAL", script
			v, err = to.client.DoWithin(ctx, command...)
		}
		return v, err
	})
}
