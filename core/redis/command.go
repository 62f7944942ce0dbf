package redis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// shape says where the keys of a command stand: they say which server of a Cluster it goes to.
type shape struct {
	from, to int // keys are args[from:to]; none when equal
}

// own are commands that change or occupy the connection that carries them, which here is everybody's.
var own = map[string]string{
	"AUTH": "", "HELLO": "", "SELECT": "", "CLIENT": "", "QUIT": "", "RESET": "", "ASKING": "", "READONLY": "", "READWRITE": "",
	"MULTI": "use a script", "EXEC": "use a script", "DISCARD": "use a script", "WATCH": "use a script", "UNWATCH": "use a script",
	"SUBSCRIBE": "", "PSUBSCRIBE": "", "SSUBSCRIBE": "", "UNSUBSCRIBE": "", "PUNSUBSCRIBE": "", "SUNSUBSCRIBE": "", "MONITOR": "", "SYNC": "", "PSYNC": "",
	"BLPOP": "use LPOP", "BRPOP": "use RPOP", "BLMOVE": "use LMOVE", "BRPOPLPUSH": "use RPOPLPUSH", "BLMPOP": "use LMPOP", "BZPOPMIN": "use ZPOPMIN",
	"BZPOPMAX": "use ZPOPMAX", "BZMPOP": "use ZMPOP", "WAIT": "", "WAITAOF": "", "SHUTDOWN": "", "DEBUG": "", "FAILOVER": "",
}

// keyless are commands without a key.
var keyless = []string{"PING", "ECHO", "TIME", "INFO", "DBSIZE", "PUBLISH", "KEYS", "SCAN", "SCRIPT", "FUNCTION", "COMMAND", "CONFIG", "ACL",
	"CLUSTER", "LATENCY", "SLOWLOG", "RANDOMKEY", "FLUSHDB", "FLUSHALL", "LASTSAVE", "ROLE", "MODULE", "PUBSUB", "SWAPDB", "BGSAVE", "SAVE", "LOLWUT"}

// several are commands all of whose arguments are keys.
var several = []string{"DEL", "UNLINK", "EXISTS", "TOUCH", "MGET", "SINTER", "SUNION", "SDIFF", "SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE", "PFCOUNT", "PFMERGE"}

// counted are commands that say how many keys follow, and where.
var counted = map[string]int{"EVAL": 2, "EVALSHA": 2, "EVAL_RO": 2, "EVALSHA_RO": 2, "FCALL": 2, "FCALL_RO": 2, "ZUNION": 1, "ZINTER": 1, "ZDIFF": 1, "SINTERCARD": 1,
	"ZINTERCARD": 1, "LMPOP": 1, "ZMPOP": 1}

// second are commands whose first argument is a subcommand or an operation.
var second = []string{"OBJECT", "MEMORY", "XINFO", "XGROUP", "BITOP"}

// shapeOf looks at a command.
func shapeOf(args []string) (shape, error) {
	if len(args) == 0 || args[0] == "" {
		return shape{}, &CommandError{"a command has a name"}
	}
	name := strings.ToUpper(args[0])
	if hint, is := own[name]; is {
		return shape{}, &CommandError{strings.TrimSuffix(name+" cannot be sent over a connection that others share: "+hint, ": ")}
	}
	if (name == "XREAD" || name == "XREADGROUP") && slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, "BLOCK") }) {
		return shape{}, &CommandError{name + " with BLOCK cannot be sent over a connection that others share"}
	}
	at, keyed := counted[name]
	switch {
	case keyed:
		return countedKeys(name, args, at)
	case slices.Contains(keyless, name) || len(args) == 1:
		return shape{}, nil
	case slices.Contains(several, name):
		return shape{1, len(args)}, nil
	case slices.Contains(second, name):
		return shape{min(2, len(args)), min(3, len(args))}, nil
	case name == "XREAD" || name == "XREADGROUP":
		i := slices.IndexFunc(args, func(a string) bool { return strings.EqualFold(a, "STREAMS") }) + 1
		return shape{i, i + (len(args)-i)/2}, nil
	}
	return shape{1, 2}, nil
}

func countedKeys(name string, args []string, at int) (shape, error) {
	if at >= len(args) {
		return shape{}, &CommandError{fmt.Sprintf("%s wants the number of its keys as argument %d", name, at)}
	}
	n, err := strconv.Atoi(args[at])
	if err != nil || n < 0 || at+1+n > len(args) {
		return shape{}, &CommandError{fmt.Sprintf("%s says that it has %q keys, and has %d more arguments", name, args[at], len(args)-at-1)}
	}
	return shape{at + 1, at + 1 + n}, nil
}

// build makes the driver's command.
func (s shape) build(link rueidis.Client, args []string) (cmd rueidis.Completed, err error) {
	defer crossed(&err)
	if s.from == s.to {
		return link.B().Arbitrary(args...).Build(), nil
	}
	return link.B().Arbitrary(args[:s.from]...).Keys(args[s.from:s.to]...).Args(args[s.to:]...).Build(), nil
}

// crossed turns the driver's panic about keys of different servers into an error.
func crossed(err *error) {
	if r := recover(); r != nil {
		*err = &ServerError{"CROSSSLOT the keys of one command must share a hash tag in a Cluster"}
	}
}
