package vm_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func take(t testing.TB, p *vm.Pool) *vm.VM {
	t.Helper()
	v, err := p.Take(nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheLastVMGivenBackGoesOutFirst(t *testing.T) {
	p := vm.NewPool(base(t, vm.Options{}), vm.PoolOptions{})
	a, b := take(t, p), take(t, p)
	p.Give(a)
	p.Give(b)
	if take(t, p) != b || take(t, p) != a {
		t.Error("not the last one")
	}
	if s := p.Stats(); s.Size != 2 || s.InUse != 2 || s.Acquires != 4 {
		t.Errorf("%+v", s)
	}
}

func TestTakeWaitsNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := vm.NewPool(base(t, vm.Options{}), vm.PoolOptions{Max: 1, Wait: 100 * time.Millisecond})
		v := take(t, p)
		start := time.Now()
		if _, err := p.Take(nil); !errors.Is(err, vm.ErrBusy) {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != 100*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		time.AfterFunc(50*time.Millisecond, func() { p.Give(v) })
		if got := take(t, p); got != v {
			t.Error("not the VM that was given back")
		}
		cancel := make(chan struct{})
		time.AfterFunc(10*time.Millisecond, func() { close(cancel) })
		if _, err := p.Take(cancel); !errors.Is(err, vm.ErrCancelled) {
			t.Error(err)
		}
		if s := p.Stats(); s.Waits != 3 || s.Exhausted != 2 || s.Acquires != 2 || s.InUse != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := vm.NewPool(base(t, vm.Options{}), vm.PoolOptions{Max: 1, Wait: time.Hour})
		v := take(t, p)
		var order []int
		for i := range 3 {
			go func() {
				time.Sleep(time.Duration(i) * time.Second)
				got := take(t, p)
				order = append(order, i)
				p.Give(got)
			}()
		}
		time.Sleep(10 * time.Second)
		p.Give(v)
		synctest.Wait()
		if len(order) != 3 || order[0] != 0 || order[1] != 1 || order[2] != 2 {
			t.Errorf("order %v", order)
		}
	})
}

func TestAVMThatWaitsOutsideMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := vm.NewPool(base(t, vm.Options{Funcs: []vm.Func{{Name: "fetch", Do: func(a vm.Args) int {
			if err := a.VM.Wait(func() { time.Sleep(5 * time.Second) }); err != nil {
				return a.Fail("%v", err)
			}
			return a.Return(lua.LTrue)
		}}}}), vm.PoolOptions{Max: 1, MaxWaiting: 2, Wait: time.Millisecond})
		script := compile(t, "s.lua", `return function() local ok, err = fetch() return err or "fetched" end`)
		var mu sync.Mutex
		got := map[lua.LValue]int{}
		for range 3 {
			go func() {
				v := take(t, p)
				defer p.Give(v)
				f, err := v.Load(script)
				if err != nil {
					t.Error(err)
					return
				}
				r, err := v.Call(f.(*lua.LFunction)) // five seconds, with a budget of 50 ms
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				got[r]++
				mu.Unlock()
			}()
			synctest.Wait()
		}
		if s := p.Stats(); s.Waiting != 2 || s.InUse != 0 || s.Size != 3 {
			t.Errorf("%+v", s)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got[lua.LString("fetched")] != 2 || got[lua.LString(vm.ErrWaiting.Error())] != 1 {
			t.Errorf("%v", got)
		}
		if s := p.Stats(); s.Waiting != 0 || s.InUse != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestVMsRetire(t *testing.T) {
	b := base(t, vm.Options{})
	p := vm.NewPool(b, vm.PoolOptions{MaxUses: 3})
	v := take(t, p)
	if _, err := v.Call(function(t, v, `return function() while true do end end`)); err == nil {
		t.Fatal("passed")
	}
	p.Give(v)
	for range 3 {
		p.Give(take(t, p))
	}
	old := take(t, p)
	b.Retire()
	p.Give(old)
	p.Give(take(t, p))
	want := [vm.Reasons]uint64{}
	want[vm.RetiredTimeout], want[vm.RetiredUses], want[vm.RetiredEpoch] = 1, 1, 1
	if s := p.Stats(); s.Retired != want || s.Size != 1 {
		t.Errorf("%+v", s)
	}
	if vm.RetiredTimeout.String() != "timeout" || vm.RetiredEpoch.String() != "epoch" {
		t.Error("names")
	}
}

func TestThePoolClearsWhatACallerLeft(t *testing.T) {
	p := vm.NewPool(base(t, vm.Options{}), vm.PoolOptions{})
	v := take(t, p)
	v.Slot, v.Phase, v.Data = "exchange", 1, "kept"
	p.Give(v)
	if v = take(t, p); v.Slot != nil || v.Phase != 0 || v.Data != "kept" {
		t.Errorf("%v %v %v", v.Slot, v.Phase, v.Data)
	}
}

func TestTakeCallAndGiveBackDoNotAllocate(t *testing.T) {
	p := vm.NewPool(base(t, vm.Options{}), vm.PoolOptions{})
	v := take(t, p)
	f := function(t, v, `return function(a, b) return b end`)
	p.Give(v)
	a, b := lua.LValue(lua.LString("a")), lua.LValue(lua.LNumber(1000))
	n := testing.AllocsPerRun(100, func() {
		v, err := p.Take(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := v.Call(f, a, b); err != nil || got != b {
			t.Fatal(got, err)
		}
		p.Give(v)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestManyVMsShareABase is for the race detector: what is shared must only be read.
func TestManyVMsShareABase(t *testing.T) {
	conf := &lua.LTable{Metatable: lua.LNil}
	conf.RawSetString("name", lua.LString("x"))
	lib := map[string]*vm.Script{"lib": compile(t, "lib.lua", `return {n = 1, f = function(a) return a .. "!" end}`)}
	b := base(t, vm.Options{Lib: lib, Values: map[string]lua.LValue{"conf": conf}})
	script := compile(t, "s.lua", `local lib = require("lib") return function(i)
		local ok, e = pcall(function() conf.name = i end)
		local co = coroutine.wrap(function(a) return lib.f(a) end)
		return co(conf.name .. i)
	end`)
	p := vm.NewPool(b, vm.PoolOptions{Max: 4, Wait: time.Minute})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 100 {
				v := take(t, p)
				f, err := v.Load(script)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := v.Call(f.(*lua.LFunction), lua.LNumber(g))
				if err != nil || got != lua.LString("x"+string(rune('0'+g))+"!") {
					t.Errorf("%v, %v", got, err)
				}
				p.Give(v)
			}
		})
	}
	wg.Wait()
	if s := p.Stats(); s.Size > 4 || s.InUse != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAPoolGoesOnWithTheCountersOfTheOneBefore(t *testing.T) {
	counters := new(vm.Counters)
	for want := uint64(1); want <= 3; want++ {
		p := vm.NewPool(base(t, vm.Options{}), vm.PoolOptions{Counters: counters})
		v, err := p.Take(nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Give(v)
		if got := p.Stats().Acquires; got != want {
			t.Errorf("pool %d has lent %d VMs", want, got)
		}
	}
}
