//go:build e2e

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestE2EReadme types what README.md says into a real shell, beside the real program as `make run` starts it, and compares what
// is printed. It runs in a copy of the checkout, with other ports in the place of README's.
func TestE2EReadme(t *testing.T) {
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(checkout, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := readSteps(t, string(readme))
	if len(steps) < 20 {
		t.Fatalf("only %d commands were found in README.md", len(steps))
	}
	place := newPlace(t, checkout)
	stop := place.serve(t)
	defer stop()
	outputs := place.typeAll(t, steps)
	for i, s := range steps {
		want := place.renumber(s.output)
		if !matches(want, outputs[i]) {
			t.Errorf("README.md:%d: $ %s\nprints\n%s\nnot\n%s", s.line, s.command, outputs[i], want)
		}
	}
}

// step is one command of README.md and what it is said to print.
type step struct {
	line    int
	command string // with its here-document
	output  string
}

var hereDocument = regexp.MustCompile(`<<'(\w+)'`)

// readSteps reads the console blocks: a line that begins with "$ " is a command, what follows is its output.
func readSteps(t *testing.T, text string) []step {
	var steps []step
	inside, document := false, ""
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case !inside:
		case document != "":
			s := &steps[len(steps)-1]
			s.command += "\n" + line
			if line == document {
				document = ""
			}
		case strings.HasPrefix(line, "$ "):
			steps = append(steps, step{line: i + 1, command: line[2:]})
			if m := hereDocument.FindStringSubmatch(line); m != nil {
				document = m[1]
			}
		case len(steps) == 0:
			t.Fatalf("README.md:%d: output without a command", i+1)
		default:
			s := &steps[len(steps)-1]
			s.output += line + "\n"
		}
	}
	return steps
}

// place is a copy of what make run needs, on ports of its own.
type place struct {
	dir     string
	numbers *strings.Replacer // README's ports to ours
	env     []string
}

func newPlace(t *testing.T, checkout string) *place {
	t.Helper()
	p := &place{dir: t.TempDir()}
	base, err := freeBlock()
	if err != nil {
		t.Fatal(err)
	}
	pairs := []string{"8080", freePort(t), "9180", freePort(t)}
	for _, offset := range []int{1, 2, 3} {
		pairs = append(pairs, strconv.Itoa(defaultDemoPort+offset), strconv.Itoa(base+offset))
	}
	p.numbers = strings.NewReplacer(pairs...)
	p.env = append(os.Environ(), "DEMO_PORT="+strconv.Itoa(base), "NO_PROXY=*")
	for _, name := range []string{"conf", "scripts"} {
		if err := os.CopyFS(filepath.Join(p.dir, name), os.DirFS(filepath.Join(checkout, name))); err != nil {
			t.Fatal(err)
		}
	}
	settings := filepath.Join(p.dir, "conf/gateway.toml")
	text, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.NewReplacer("127.0.0.1:8080", "127.0.0.1:"+pairs[1], "127.0.0.1:9180", "127.0.0.1:"+pairs[3]).Replace(string(text))
	if err := os.WriteFile(settings, []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(checkout, "bin"), filepath.Join(p.dir, "bin")); err != nil {
		t.Fatal(err)
	}
	return p
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
}

func (p *place) renumber(text string) string { return p.numbers.Replace(text) }

// serve does what `make run` does and waits until it serves. The returned function is Ctrl-C: the program must end with 0.
func (p *place) serve(t *testing.T) (stop func()) {
	t.Helper()
	cmd := exec.Command("bin/moongate", "run", "-c", "conf/gateway.toml", "--demo")
	said := newTranscript()
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.Stdout = p.dir, p.env, said, newTranscript()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		ended <- cmd.Wait()
		close(done)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	if !said.await(ctx, done, func(text string) bool { return adminLine.MatchString(text) }) {
		cmd.Process.Kill()
		<-done
		t.Fatalf("make run did not serve:\n%s", said)
	}
	return func() {
		cmd.Process.Signal(syscall.SIGINT)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("after Ctrl-C: %v\n%s", err, said)
			}
		case <-time.After(4 * patience):
			cmd.Process.Kill()
			<-done
			t.Errorf("Ctrl-C did not end it:\n%s", said)
		}
	}
}

// typeAll runs the commands in one shell and returns what each printed, errors included.
func (p *place) typeAll(t *testing.T, steps []step) []string {
	t.Helper()
	var script strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&script, "printf '\\n@@ %d\\n'\n%s\n", i, p.renumber(s.command))
	}
	script.WriteString("printf '\\n@@ end\\n'\n")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash")
	cmd.Dir, cmd.Env, cmd.Stdin = p.dir, p.env, strings.NewReader(script.String())
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the shell: %v\n%s", err, printed)
	}
	outputs := regexp.MustCompile(`(?m)^@@ .*$`).Split(string(printed), -1)[1:]
	if len(outputs) != len(steps)+1 {
		t.Fatalf("%d outputs of %d commands:\n%s", len(outputs)-1, len(steps), printed)
	}
	return outputs
}

// matches compares line by line. "..." stands for anything within a line, and a count that `uniq -c` printed may be off by two: a
// bucket goes on filling while twenty requests are sent.
func matches(want, got string) bool {
	w, g := lines(want), lines(got)
	if len(w) != len(g) {
		return false
	}
	for i := range w {
		if !lineMatches(w[i], g[i]) {
			return false
		}
	}
	return true
}

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
}

var counted = regexp.MustCompile(`^ +(\d+) (.*)$`)

func lineMatches(want, got string) bool {
	w, g := counted.FindStringSubmatch(want), counted.FindStringSubmatch(got)
	if w != nil && g != nil && w[2] == g[2] {
		expected, _ := strconv.Atoi(w[1])
		actual, _ := strconv.Atoi(g[1])
		return actual-expected <= 2 && expected-actual <= 2
	}
	parts := strings.Split(want, "...")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(got)
}
