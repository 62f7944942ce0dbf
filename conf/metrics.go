package conf

import (
	"slices"
	"strings"
)

// Metrics is what every series carries.
type Metrics struct {
	Pos    Pos
	Labels map[string]string // constant labels
}

// Equal tells whether two say the same, wherever they stand.
func (m Metrics) Equal(other Metrics) bool { return same(m, other) }

// ownLabels are the labels that the gateway's series have already.
var ownLabels = []string{
	"class", "endpoint", "le", "limiter", "quantile", "result", "route", "script", "stage", "status", "upstream", "version",
}

var metricsSection = section[Metrics]{
	custom("labels", func(b *binder, key string, v Value, m *Metrics) {
		t, ok := b.table(key, v)
		if !ok {
			return
		}
		m.Labels = make(map[string]string)
		for name, v := range t.All() {
			full := join(key, name)
			b.note(full, v.Pos)
			switch {
			case variableName(name) != "" || strings.HasPrefix(name, "__"):
				b.errs.Add(v.Pos, full, "is no label's name: write letters, digits and _, not beginning with __")
			case slices.Contains(ownLabels, name):
				b.errs.Add(v.Pos, full, "is a label of the gateway's own series: choose another name")
			default:
				if s, ok := b.text(full, v); ok {
					m.Labels[name] = s
				}
			}
		}
	}, "NAME"),
}
