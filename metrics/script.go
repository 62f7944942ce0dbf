package metrics

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// ScriptKind is the kind of a script's metric.
type ScriptKind uint8

// The kinds of script metrics.
const (
	Counter ScriptKind = iota
	Gauge
	Histogram
)

// ScriptOptions declare a script's metric.
type ScriptOptions struct {
	// Script is the script that the metric belongs to, by the name that Plan.Filter knows: the metric goes when a generation
	// has no such filter and declares it no more.
	Script string
	// Name follows moongate_script_, without it: lower case, digits and underscores. A counter's ends in _total, which is
	// added if it is missing; other kinds' must not.
	Name string
	// Help is the line that a scrape shows; "" names the script.
	Help string
	Kind ScriptKind
	// Labels are at most eight names.
	Labels []string
}

const (
	scriptPrefix  = "moongate_script_"
	maxLabels     = 8
	maxValue      = 128 // bytes of a label's value
	maxDeclared   = 256
	overflowValue = "overflow"
)

var (
	scriptName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,99}$`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,99}$`)
)

// ScriptMetric is a script's metric with its series. It is safe for concurrent use. Values of labels are made valid UTF-8 and
// cut at 128 bytes. When there are as many series as Options.ScriptSeries, new ones are counted together, under the value
// "overflow" for each label, and moongate_script_overflows_total tells how often.
type ScriptMetric struct {
	m      *Metrics
	name   string
	kind   ScriptKind
	labels []string
	desc   *prometheus.Desc
	owners map[string]struct{} // guarded by m.mu

	mu     sync.RWMutex
	series map[string]*scriptSeries
}

type scriptSeries struct {
	labels  []string
	value   atomic.Uint64 // float64 bits; of a histogram the sum
	buckets [maxBuckets]atomic.Uint64
}

// Script gives the metric that a script declares. Declared again, by any VM, it is the same one; with another kind or other
// labels it is an error within a generation, and a new metric in the next.
func (p *Plan) Script(o ScriptOptions) (*ScriptMetric, error) {
	name, err := o.check(p.labels)
	if err != nil {
		return nil, err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if s := p.scripts[name]; s != nil {
		if !s.like(o) {
			return nil, fmt.Errorf("metric %q: already declared with another kind or other labels", o.Name)
		}
		s.owners[o.Script] = struct{}{}
		return s, nil
	}
	if len(p.scripts) >= maxDeclared {
		return nil, fmt.Errorf("metric %q: more than %d are declared", o.Name, maxDeclared)
	}
	s := p.m.scripts[name]
	if s == nil || !s.like(o) {
		s = p.m.newScript(name, o)
		if !p.retired && (p.m.live == p || p.m.live.scripts[name] == nil) {
			p.m.scripts[name] = s
		}
	}
	s.owners[o.Script] = struct{}{}
	p.scripts[name] = s
	return s, nil
}

func (m *Metrics) newScript(name string, o ScriptOptions) *ScriptMetric {
	help := o.Help
	if help == "" {
		help = "Counted by the script " + o.Script + "."
	}
	labels := slices.Clone(o.Labels)
	return &ScriptMetric{
		m: m, name: name, kind: o.Kind, labels: labels,
		desc:   prometheus.NewDesc(name, printable(help), labels, nil),
		owners: make(map[string]struct{}),
		series: make(map[string]*scriptSeries),
	}
}

// check gives the metric's full name, or says what is wrong with the declaration.
func (o *ScriptOptions) check(constant map[string]string) (string, error) {
	name := o.Name
	if !scriptName.MatchString(name) {
		return "", fmt.Errorf("metric %q: want a name of lower case letters, digits and underscores", name)
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if strings.HasSuffix(name, suffix) {
			return "", fmt.Errorf("metric %q: want a name that does not end in %s", name, suffix)
		}
	}
	total := strings.HasSuffix(name, "_total")
	if total && o.Kind != Counter {
		return "", fmt.Errorf("metric %q: only a counter's name ends in _total", name)
	}
	if !total && o.Kind == Counter {
		name += "_total"
	}
	if scriptPrefix+name == scriptOverflows.name {
		return "", fmt.Errorf("metric %q: the gateway has a metric of that name", o.Name)
	}
	if len(o.Labels) > maxLabels {
		return "", fmt.Errorf("metric %q: %d labels, want at most %d", o.Name, len(o.Labels), maxLabels)
	}
	for i, label := range o.Labels {
		_, taken := constant[label]
		if !labelName.MatchString(label) || reserved(label) || taken || slices.Contains(o.Labels[:i], label) {
			return "", fmt.Errorf("metric %q: label %q is no name for a label, reserved, or used already", o.Name, label)
		}
	}
	return scriptPrefix + name, nil
}

func (s *ScriptMetric) like(o ScriptOptions) bool {
	return s.kind == o.Kind && slices.Equal(s.labels, o.Labels)
}
