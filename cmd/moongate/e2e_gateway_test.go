package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

func pid() int { return os.Getpid() }

// process is a gateway that runs beside the script.
type process struct {
	cmd   *exec.Cmd
	out   *transcript // the access log
	err   *transcript // everything else
	ended chan struct{}
}

// startProcess runs moongate, which is this test binary under another name, with the script's variables and folder.
func startProcess(ts *testscript.TestScript, args []string) *process {
	self, err := os.Executable()
	ts.Check(err)
	vars := filepath.Join(ts.Getenv("TMPDIR"), "environment")
	ts.Check(ts.Exec("environment", vars))
	p := &process{cmd: exec.Command(self), out: newTranscript(), err: newTranscript(), ended: make(chan struct{})}
	p.cmd.Args = append([]string{"moongate"}, args...)
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(vars)), &p.cmd.Env))
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	ts.Check(p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the exit code is asked for where it matters
	}()
	return p
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

func gatewayCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || neg && args[0] != "start" {
		ts.Fatalf("usage: gateway start|hup|term|end [...]")
	}
	w, rest := worldOf(ts), args[1:]
	if args[0] != "start" && w.gateway == nil {
		ts.Fatalf("no gateway was started")
	}
	switch args[0] {
	case "start":
		w.start(ts, neg, rest)
	case "hup":
		ts.Check(w.gateway.cmd.Process.Signal(syscall.SIGHUP))
	case "term":
		ts.Check(w.gateway.cmd.Process.Signal(syscall.SIGTERM))
	case "end":
		w.ended(ts, rest)
	default:
		ts.Fatalf("gateway %s: unknown", args[0])
	}
}

var (
	servingLine = regexp.MustCompile(`(?m)^serving on https?://(\S+)`)
	adminLine   = regexp.MustCompile(`(?m)^admin on http://(\S+)`)
)

func (w *world) start(ts *testscript.TestScript, neg bool, flags []string) {
	if w.gateway != nil {
		w.gateway.kill()
	}
	p := startProcess(ts, append([]string{"run", "-c", "gateway.toml", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, flags...))
	w.gateway = p
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	serves := p.err.await(ctx, p.ended, func(text string) bool {
		return servingLine.MatchString(text) && adminLine.MatchString(text)
	})
	text := p.err.String()
	if neg {
		select {
		case <-p.ended:
		case <-ctx.Done():
			p.kill()
		}
		if serves {
			ts.Fatalf("the gateway started:\n%s", text)
		}
		_, err := ts.Stderr().Write([]byte(text))
		ts.Check(err)
		return
	}
	if !serves {
		ts.Fatalf("the gateway did not start:\n%s", text)
	}
	ts.Logf("%s", text)
	ts.Setenv("GATEWAY", servingLine.FindStringSubmatch(text)[1])
	ts.Setenv("ADMIN", adminLine.FindStringSubmatch(text)[1])
}

func (w *world) ended(ts *testscript.TestScript, args []string) {
	want := 0
	if len(args) == 1 {
		n, err := strconv.Atoi(args[0])
		ts.Check(err)
		want = n
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	select {
	case <-w.gateway.ended:
	case <-ctx.Done():
		ts.Fatalf("the gateway still runs:\n%s", w.gateway.err)
	}
	if got := w.gateway.cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("the gateway ended with code %d, want %d:\n%s", got, want, w.gateway.err)
	}
}

func logCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] log PATTERN")
	}
	expectLines(ts, neg, worldOf(ts).gateway, worldOf(ts).gateway.err, args[0], 1)
}

func accessCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: [!] access PATTERN [COUNT]")
	}
	count := 1
	if len(args) == 2 {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		count = n
	}
	expectLines(ts, neg, worldOf(ts).gateway, worldOf(ts).gateway.out, args[0], count)
}

// expectLines waits until count lines match; what must not be there is looked for at once.
func expectLines(ts *testscript.TestScript, neg bool, p *process, t *transcript, text string, count int) {
	re := pattern(ts, text)
	if neg {
		if line := re.FindString(t.String()); line != "" {
			ts.Fatalf("unexpected %q in:\n%s", line, t)
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !t.await(ctx, p.ended, func(text string) bool { return len(re.FindAllString(text, -1)) >= count }) {
		ts.Fatalf("not %d lines match %q:\n%s", count, text, t)
	}
	if n := len(re.FindAllString(t.String(), -1)); n > count && count > 1 {
		ts.Fatalf("%d lines match %q, want %d:\n%s", n, text, count, t)
	}
}
