package luaapi

import (
	"log/slog"
	"os"
	"sync"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/luaapi/vm"
	"github.com/moongate/moongate/metrics"
)

// world is what all stages of a pipeline share.
type world struct {
	services    core.Services
	log         *slog.Logger
	metrics     *metrics.Plan
	shared      *Shared
	timers      *Timers
	limits      *limit.Plan
	redis       *redis.Plan
	verifiers   *auth.Plan
	env         map[string]conf.Secret
	names       []string // of the variables that may be read
	identity    *identity
	saysHeaders bool // some script has the word in it
	files       files
	limitsHTTP  conf.ScriptHTTP
	delay       conf.ScriptDelay
	ipSets      ipSets
	shapes      jsonShapes
	mask        *masker
	kinds       [3]*surface // req, res, entry
}

// worldOf is the world in which a VM runs, while loading too.
func worldOf(v *vm.VM) *world { return v.Data.(*machine).stage.world }

// files are what gw.file.read has read: once for the pipeline, so that all VMs see the same.
type files struct {
	dir  string
	mu   sync.Mutex
	read map[string]fileText
}

type fileText struct {
	text string
	err  error
}

// get reads a file inside the folder; links that lead out of it are refused.
func (f *files) get(name string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.read[name]; ok {
		return known.text, known.err
	}
	if f.read == nil {
		f.read = map[string]fileText{}
	}
	text, err := f.load(name)
	f.read[name] = fileText{text, err}
	return text, err
}

func (f *files) load(name string) (string, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	text, err := root.ReadFile(name)
	return string(text), err
}
