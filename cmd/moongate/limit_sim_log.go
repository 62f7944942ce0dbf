package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/moongate/moongate/core/limit"
)

// event is one request of an access log.
type event struct {
	at  time.Time
	key string
}

// longestLine is the longest access line that is read.
const longestLine = 1 << 20

// readEvents reads the lines of an access log; those that are none are counted.
func readEvents(file, key string) (events []event, skipped int, err error) {
	in := io.Reader(os.Stdin)
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, 0, err
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var line struct {
			Time     time.Time `json:"time"`
			ClientIP string    `json:"client_ip"`
			User     string    `json:"user"`
			Route    string    `json:"route"`
		}
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Time.IsZero() {
			skipped++
			continue
		}
		e := event{line.Time, "ip:" + line.ClientIP}
		switch {
		case key == "user" && line.User != "":
			e.key = "user:" + line.User
		case key == "route":
			e.key = "route:" + line.Route
		case key == "global":
			e.key = "global"
		}
		events = append(events, e)
	}
	if err := lines.Err(); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", file, err)
	}
	return events, skipped, nil
}

// replayed is what became of a log.
type replayed struct {
	from, to       time.Time
	passed         int
	refused        int
	keys           map[string]*keyCount
	steps          [steps]struct{ passed, refused int }
	longestRefusal time.Duration
}

type keyCount struct {
	key             string
	passed, refused int
	first           time.Time // refused for the first time
}

// steps is into how many stretches of time a log is cut for the drawing.
const steps = 120

// replay asks the limiter about every request at its time.
func replay(events []event, l limit.Limiter, clock *simClock) *replayed {
	r := &replayed{from: events[0].at, to: events[len(events)-1].at, keys: map[string]*keyCount{}}
	for _, e := range events {
		clock.now = e.at
		k := r.keys[e.key]
		if k == nil {
			k = &keyCount{key: e.key}
			r.keys[e.key] = k
		}
		step := &r.steps[r.step(e.at)]
		if d := l.Take(e.key, 1); d.OK {
			r.passed, k.passed, step.passed = r.passed+1, k.passed+1, step.passed+1
			continue
		} else if d.RetryAfter != limit.Never {
			r.longestRefusal = max(r.longestRefusal, d.RetryAfter)
		}
		r.refused, k.refused, step.refused = r.refused+1, k.refused+1, step.refused+1
		if k.first.IsZero() {
			k.first = e.at
		}
	}
	return r
}

func (r *replayed) step(at time.Time) int {
	span := r.to.Sub(r.from)
	if span <= 0 {
		return 0
	}
	return min(int(float64(at.Sub(r.from))/float64(span)*steps), steps-1)
}

// print tells what became of the log, with the keys that were refused most.
func (r *replayed) print(out io.Writer, name string, top int) {
	total := r.passed + r.refused
	var hit []*keyCount
	for _, k := range r.keys {
		if k.refused > 0 {
			hit = append(hit, k)
		}
	}
	fmt.Fprintf(out, "%s: %s of %s in %s, from %s\n", name, plural(total, "request"), plural(len(r.keys), "key"), r.to.Sub(r.from).Round(time.Second),
		r.from.Format(time.RFC3339))
	fmt.Fprintf(out, "%d would have passed, %d refused (%.2f %%), of %s; the longest wait is %s\n", r.passed, r.refused,
		100*float64(r.refused)/float64(total), plural(len(hit), "key"), r.longestRefusal.Round(time.Millisecond))
	slices.SortFunc(hit, func(a, b *keyCount) int {
		if a.refused != b.refused {
			return b.refused - a.refused
		}
		return strings.Compare(a.key, b.key)
	})
	if len(hit) > top {
		hit = hit[:top]
	}
	for _, k := range hit {
		fmt.Fprintf(out, "%9d refused %9d passed  %s, first at %s\n", k.refused, k.passed, printableKey(k.key), k.first.Format(time.RFC3339))
	}
}

// printableKey keeps a key of a log from moving the cursor.
func printableKey(key string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, key)
}
