package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"
)

// question is one request, as it goes out byte for byte.
type question struct {
	address string
	method  string
	text    []byte
	tls     *tls.Config // nil: none
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func httpCommand(ts *testscript.TestScript, neg bool, args []string) {
	times, together, later := 1, 1, false
	if len(args) > 0 && args[0] == "-b" {
		later, args = true, args[1:]
	}
	var secure *tls.Config
	if len(args) > 2 && args[0] == "-t" {
		secure, args = clientTLS(ts, args[1]), args[2:]
	}
	for len(args) > 2 && (args[0] == "-n" || args[0] == "-p") {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		if args[0] == "-n" {
			times = n
		} else {
			together = n
		}
		args = args[2:]
	}
	if len(args) < 2 {
		ts.Fatalf("usage: http [-b] [-t CERTIFICATE|-] [-n N] [-p N] METHOD URL [Name:value...] [body=TEXT]")
	}
	q := newQuestion(ts, args)
	q.tls = secure
	if !later {
		worldOf(ts).take(ts, neg, q.askAll(times, together))
		return
	}
	come := make(chan []answer, 1)
	worldOf(ts).come = come
	go func() { come <- q.askAll(times, together) }()
}

// answersCommand waits for what was asked in the background.
func answersCommand(ts *testscript.TestScript, neg bool, args []string) {
	w := worldOf(ts)
	if len(args) != 0 || w.come == nil {
		ts.Fatalf("usage: [!] answers, after http -b")
	}
	w.take(ts, neg, <-w.come)
	w.come = nil
}

// take keeps answers for the assertions. There must be some, or, negated, none.
func (w *world) take(ts *testscript.TestScript, neg bool, answers []answer) {
	w.answers = answers
	for _, a := range answers {
		switch {
		case a.err != nil && !neg:
			ts.Fatalf("no answer: %v", a.err)
		case a.err == nil && neg:
			ts.Fatalf("an unexpected answer: %d %s", a.status, a.body)
		}
		ts.Logf("%d %s", a.status, bytes.TrimSpace(a.body))
	}
}

func newQuestion(ts *testscript.TestScript, args []string) question {
	method, target := args[0], args[1]
	address := ts.Getenv("GATEWAY")
	if rest, ok := strings.CutPrefix(target, "http://"); ok {
		address, target = rest, "/"
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			address, target = rest[:i], rest[i:]
		}
	}
	host, fields, body, hasBody := address, "", "", false
	for _, arg := range args[2:] {
		if text, ok := strings.CutPrefix(arg, "body="); ok {
			body, hasBody = text, true
			continue
		}
		name, value, ok := strings.Cut(arg, ":")
		if !ok {
			ts.Fatalf("%q is neither Name:value nor body=TEXT", arg)
		}
		value = strings.TrimSpace(value)
		if strings.EqualFold(name, "Host") {
			host = value
			continue
		}
		fields += name + ": " + value + "\r\n"
	}
	if hasBody {
		if !strings.Contains(strings.ToLower(fields), "content-type:") {
			fields += "Content-Type: application/json\r\n"
		}
		fields += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return question{address: address, method: method, text: fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", method, target, host, fields, body)}
}

// askAll asks again and again, several at once each time.
func (q question) askAll(times, together int) []answer {
	answers := make([]answer, times*together)
	for round := range times {
		var all sync.WaitGroup
		for i := range together {
			all.Go(func() { answers[round*together+i] = q.ask() })
		}
		all.Wait()
	}
	return answers
}

// ask sends the question over a connection of its own.
func (q question) ask() answer {
	conn, err := net.DialTimeout("tcp", q.address, patience)
	if err != nil {
		return answer{err: err}
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(4 * patience))
	if q.tls != nil {
		conn = tls.Client(conn, q.tls)
	}
	if _, err := conn.Write(q.text); err != nil {
		return answer{err: err}
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: q.method})
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, body, err}
}

func rawCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: raw ADDRESS TEXT")
	}
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(args[1], `"`, `\"`) + `"`)
	ts.Check(err)
	method, _, _ := strings.Cut(text, " ")
	a := question{address: args[0], method: method, text: []byte(text)}.ask()
	ts.Check(a.err)
	worldOf(ts).answers = []answer{a}
	ts.Logf("%d %s", a.status, bytes.TrimSpace(a.body))
}

// answersOf are the answers that an assertion is about.
func answersOf(ts *testscript.TestScript) []answer {
	answers := worldOf(ts).answers
	if len(answers) == 0 {
		ts.Fatalf("nothing was asked yet")
	}
	return answers
}

// cookieCommand takes the value of a cookie out of an answer; negated, no answer may set it.
func cookieCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg && len(args) != 1 || !neg && len(args) != 2 {
		ts.Fatalf("usage: cookie COOKIE NAME, ! cookie COOKIE")
	}
	value := ""
	for _, a := range answersOf(ts) {
		for _, c := range (&http.Response{Header: a.header}).Cookies() {
			if c.Name == args[0] {
				value = c.Value
			}
		}
	}
	switch {
	case neg && value != "":
		ts.Fatalf("an answer sets %s=%s", args[0], value)
	case !neg && value == "":
		ts.Fatalf("no answer sets %s", args[0])
	case !neg:
		ts.Setenv(args[1], value)
	}
}

// tripCommand asks until something answers with that status, which it does after a while.
func tripCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: trip URL STATUS [Name:value...]")
	}
	q := newQuestion(ts, append([]string{"GET", args[0]}, args[2:]...))
	var last answer
	if !until(func() bool { last = q.ask(); return strconv.Itoa(last.status) == args[1] }) {
		ts.Fatalf("still %d %s, want %s", last.status, last.body, args[1])
	}
}

func statusCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: status N")
	}
	for _, a := range answersOf(ts) {
		if strconv.Itoa(a.status) != args[0] {
			ts.Fatalf("status %d, want %s: %s", a.status, args[0], a.body)
		}
	}
}

func onlyCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: only N")
	}
	w := worldOf(ts)
	w.answers = slices.DeleteFunc(slices.Clone(answersOf(ts)), func(a answer) bool { return strconv.Itoa(a.status) != args[0] })
}

func statusesCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: statuses N:COUNT|N:MIN-MAX ...")
	}
	count := map[string]int{}
	for _, a := range answersOf(ts) {
		count[strconv.Itoa(a.status)]++
	}
	for _, arg := range args {
		status, span, _ := strings.Cut(arg, ":")
		low, high, two := strings.Cut(span, "-")
		if !two {
			high = low
		}
		least, err := strconv.Atoi(low)
		ts.Check(err)
		most, err := strconv.Atoi(high)
		ts.Check(err)
		if n := count[status]; n < least || n > most {
			ts.Fatalf("%d answers %s, want %s: all are %v", n, status, span, count)
		}
		delete(count, status)
	}
	if len(count) > 0 {
		ts.Fatalf("answers of another status: %v", count)
	}
}

func headerCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: header NAME PATTERN, ! header NAME [PATTERN]")
	}
	re := pattern(ts, strings.Join(args[1:], ""))
	for _, a := range answersOf(ts) {
		values := a.header.Values(args[0])
		found := len(values) > 0 && re.MatchString(strings.Join(values, "\n"))
		if found == neg {
			ts.Fatalf("%s is %q", args[0], values)
		}
	}
}

func bodyCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] body PATTERN")
	}
	re := pattern(ts, args[0])
	for _, a := range answersOf(ts) {
		if re.Match(a.body) == neg {
			ts.Fatalf("the body is %s", a.body)
		}
	}
}

func jsonCommand(ts *testscript.TestScript, neg bool, args []string) {
	answers := answersOf(ts)
	if neg || len(args) != 1+len(answers) {
		ts.Fatalf("usage: json PATH VALUE, one value for each of the %d answers", len(answers))
	}
	var got []string
	for _, a := range answers {
		got = append(got, gjson.GetBytes(a.body, args[0]).String())
	}
	if strings.Join(got, " ") != strings.Join(args[1:], " ") {
		ts.Fatalf("%s is %q, want %q: %s", args[0], got, args[1:], answers[len(answers)-1].body)
	}
}

func captureCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME PATH")
	}
	answers := answersOf(ts)
	value := gjson.GetBytes(answers[len(answers)-1].body, args[1])
	if !value.Exists() {
		ts.Fatalf("there is no %s in %s", args[1], answers[len(answers)-1].body)
	}
	ts.Setenv(args[0], value.String())
}

func keepCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: keep NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}
