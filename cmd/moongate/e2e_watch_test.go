package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func metricCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 && (!neg || len(args) != 1) {
		ts.Fatalf("usage: metric SERIES VALUE, ! metric SERIES")
	}
	var sum float64
	var found bool
	holds := until(func() bool {
		var err error
		sum, found, err = scrape(ts.Getenv("ADMIN"), args[0])
		ts.Check(err)
		return neg && !found || !neg && found && strconv.FormatFloat(sum, 'f', -1, 64) == args[1]
	})
	if !holds {
		ts.Fatalf("%s is %v (there: %v)", args[0], sum, found)
	}
}

// scrape sums the series of that name which have all labels of it.
func scrape(admin, series string) (sum float64, found bool, err error) {
	text, err := metricsText(admin)
	if err != nil {
		return 0, false, err
	}
	name, rest, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	for line := range strings.Lines(text) {
		key, value := splitSeries(line)
		labels, ok := strings.CutPrefix(key, name)
		if !ok || labels != "" && labels[0] != '{' || !hasAll(labels, rest) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, false, fmt.Errorf("%s: %w", line, err)
		}
		sum, found = sum+n, true
	}
	return sum, found, nil
}

func metricsText(admin string) (string, error) {
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("/metrics answers %s", resp.Status)
	}
	return string(text), err
}

// splitSeries takes a line of the text format apart.
func splitSeries(line string) (key, value string) {
	line = strings.TrimSpace(line)
	if i := strings.LastIndexByte(line, ' '); i >= 0 && line[0] != '#' {
		return line[:i], line[i+1:]
	}
	return "", ""
}

// seriesCommand remembers which series there are, or finds that they are the same still.
func seriesCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || args[0] != "remember" && args[0] != "same" {
		ts.Fatalf("usage: series remember|same")
	}
	text, err := metricsText(ts.Getenv("ADMIN"))
	ts.Check(err)
	var keys []string
	for line := range strings.Lines(text) {
		if key, _ := splitSeries(line); key != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	w := worldOf(ts)
	if args[0] == "same" && !slices.Equal(keys, w.series) {
		for _, key := range keys {
			if _, ok := slices.BinarySearch(w.series, key); !ok {
				ts.Fatalf("a new series: %s", key)
			}
		}
		ts.Fatalf("there were %d series and are %d", len(w.series), len(keys))
	}
	w.series = keys
}

// floodCommand asks for random paths with random methods over a few connections.
func floodCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: flood N")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	errs := make([]error, loadConnections)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = flood(ts.Getenv("GATEWAY"), n/loadConnections, rand.New(rand.NewPCG(1, uint64(i)))) })
	}
	all.Wait()
	ts.Check(errors.Join(errs...))
}

func flood(gateway string, n int, random *rand.Rand) error {
	methods := []string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "PROPFIND", "X-ANYTHING"}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for range n {
		method := methods[random.IntN(len(methods))]
		if random.IntN(4) == 0 {
			method = fmt.Sprintf("M%d", random.Uint32())
		}
		r, err := http.NewRequest(method, fmt.Sprintf("http://%s/%x/%x?%x", gateway, random.Uint32(), random.Uint32(), random.Uint32()), nil)
		if err != nil {
			return err
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func hasAll(labels, wanted string) bool {
	for want := range strings.SplitSeq(wanted, ",") {
		if want != "" && !strings.Contains(labels, want) {
			return false
		}
	}
	return true
}

// load keeps connections busy and counts what it is answered.
type load struct {
	quit     chan struct{}
	running  sync.WaitGroup
	answered atomic.Int64
	mu       sync.Mutex
	failures []string
}

const loadConnections = 4

func loadCommand(ts *testscript.TestScript, neg bool, args []string) {
	w := worldOf(ts)
	switch {
	case !neg && len(args) >= 2 && args[0] == "start" && w.load == nil:
		w.load = startLoad(ts, args[1], args[2:])
	case !neg && len(args) == 2 && args[0] == "more" && w.load != nil:
		n, err := strconv.ParseInt(args[1], 10, 64)
		ts.Check(err)
		w.load.more(ts, n)
	case !neg && len(args) == 1 && args[0] == "stop" && w.load != nil:
		w.load.stop()
		ts.Logf("%d answers", w.load.answered.Load())
		if failures := w.load.failures; len(failures) > 0 {
			ts.Fatalf("%d of %d failed, first: %s", len(failures), w.load.answered.Load(), failures[0])
		}
		w.load = nil
	default:
		ts.Fatalf("usage: load start URL [Name:value...] | load more N | load stop")
	}
}

func startLoad(ts *testscript.TestScript, url string, fields []string) *load {
	if strings.HasPrefix(url, "/") {
		url = "http://" + ts.Getenv("GATEWAY") + url
	}
	r, err := http.NewRequest(http.MethodGet, url, nil)
	ts.Check(err)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ":")
		r.Header.Set(name, strings.TrimSpace(value))
	}
	l := &load{quit: make(chan struct{})}
	for range loadConnections {
		l.running.Go(func() { l.press(r) })
	}
	return l
}

// press asks over one connection until the load stops.
func (l *load) press(r *http.Request) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: 4 * patience}
	for {
		select {
		case <-l.quit:
			return
		default:
		}
		if failure := l.once(&client, r); failure != "" {
			l.mu.Lock()
			l.failures = append(l.failures, failure)
			l.mu.Unlock()
		}
		l.answered.Add(1)
	}
}

func (l *load) once(client *http.Client, r *http.Request) string {
	resp, err := client.Do(r.Clone(r.Context()))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s %v %s", resp.Status, err, body)
	}
	return ""
}

func (l *load) more(ts *testscript.TestScript, n int64) {
	goal, deadline := l.answered.Load()+n, time.Now().Add(4*patience)
	for l.answered.Load() < goal {
		if time.Now().After(deadline) {
			ts.Fatalf("%d answers are missing", goal-l.answered.Load())
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (l *load) stop() {
	select {
	case <-l.quit:
	default:
		close(l.quit)
	}
	l.running.Wait()
}
