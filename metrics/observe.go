package metrics

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Add adds to a counter or a gauge. The values go with the labels, in their order. A counter refuses what is below 0.
func (s *ScriptMetric) Add(amount float64, values ...string) error {
	if s.kind == Histogram {
		return errors.New("a histogram is not added to: want observe")
	}
	if s.kind == Counter && !(amount >= 0 && amount <= math.MaxFloat64) {
		return fmt.Errorf("a counter only goes up: want a number of at least 0, not %v", amount)
	}
	series, err := s.find(values)
	if err == nil {
		series.add(amount)
	}
	return err
}

// Set sets a gauge.
func (s *ScriptMetric) Set(value float64, values ...string) error {
	if s.kind != Gauge {
		return errors.New("only a gauge is set")
	}
	series, err := s.find(values)
	if err == nil {
		series.value.Store(math.Float64bits(value))
	}
	return err
}

// Observe counts a value in a histogram, whose buckets are those of request durations in seconds.
func (s *ScriptMetric) Observe(value float64, values ...string) error {
	if s.kind != Histogram {
		return errors.New("only a histogram observes")
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return fmt.Errorf("a histogram observes numbers, not %v", value)
	}
	series, err := s.find(values)
	if err != nil {
		return err
	}
	i := 0
	for i < len(requestBounds) && value > requestBounds[i].Seconds() {
		i++
	}
	series.buckets[i].Add(1)
	series.add(value)
	return nil
}

func (s *scriptSeries) add(amount float64) {
	for {
		old := s.value.Load()
		if s.value.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+amount)) {
			return
		}
	}
}

// find gives the series with the values, a new one if there is room, else the one that all others share.
func (s *ScriptMetric) find(values []string) (*scriptSeries, error) {
	if len(values) != len(s.labels) {
		return nil, fmt.Errorf("%d values for %d labels", len(values), len(s.labels))
	}
	var room [256]byte
	key := room[:0]
	for _, v := range values {
		key = append(append(key, clean(v)...), 0xff) // which no clean value contains
	}
	s.mu.RLock()
	series := s.series[string(key)]
	s.mu.RUnlock()
	if series != nil {
		return series, nil
	}
	return s.insert(string(key), values), nil
}

func (s *ScriptMetric) insert(key string, values []string) *scriptSeries {
	s.mu.Lock()
	defer s.mu.Unlock()
	if series := s.series[key]; series != nil {
		return series
	}
	labels := make([]string, len(values))
	for i, v := range values {
		labels[i] = strings.Clone(clean(v))
	}
	if len(s.series) >= s.m.options.ScriptSeries {
		s.m.overflows.Add(1)
		for i := range labels {
			labels[i] = overflowValue
		}
		key = strings.Repeat(overflowValue+"\xff", len(labels))
		if series := s.series[key]; series != nil {
			return series
		}
	}
	series := &scriptSeries{labels: labels}
	s.series[key] = series
	return series
}

// clean makes a label's value valid and short. What is clean already is returned as it is.
func clean(value string) string {
	if len(value) > maxValue {
		end := maxValue
		for end > maxValue-utf8.UTFMax && !utf8.RuneStart(value[end]) {
			end--
		}
		value = value[:end]
	}
	return printable(value)
}
