package conf_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/conf"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]conf.Rate{
		"5/s":             {Count: 5, Per: time.Second},
		"100/m":           {Count: 100, Per: time.Minute},
		"1000/h":          {Count: 1000, Per: time.Hour},
		"7/d":             {Count: 7, Per: 24 * time.Hour},
		"1/30d":           {Count: 1, Per: 30 * 24 * time.Hour},
		"3/10s":           {Count: 3, Per: 10 * time.Second},
		"1/1m30s":         {Count: 1, Per: 90 * time.Second},
		"2/100ms":         {Count: 2, Per: 100 * time.Millisecond},
		"0.5/s":           {Count: 1, Per: 2 * time.Second},
		"1000000/s":       {Count: 1000000, Per: time.Second},
		"5":               {Count: 5, Per: time.Second},
		"0.1":             {Count: 1, Per: 10 * time.Second},
		"2.50":            {Count: 5, Per: 2 * time.Second},
		"0.3333333333333": {Count: 333333333, Per: 1e9 * time.Second},
	} {
		got, err := conf.ParseRate(text)
		if err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
		if again, err := conf.ParseRate(got.String()); err != nil || again != got {
			t.Errorf("%s reads back as %v, %v", got, again, err)
		}
	}
	for _, text := range []string{
		"", "/", "/s", "5/", "5/x", "5/0s", "5/-1s", "-5/s", "+5/s", "0", "0/s", "0.0", "5 /s", "5/ s", "5/s ", "1e3/s", "1/2/s",
		"five", "0x10/s", "1_000/s", "Inf", "NaN", "1000001/s", "2/us", "1/99999999d", "0.00000000000001", "5/sec", "1/3", "..5/s",
		strings.Repeat("9", 50) + "/s", "5\n/s",
	} {
		if got, err := conf.ParseRate(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestRateOfNumbers(t *testing.T) {
	for number, want := range map[float64]conf.Rate{
		1:    {Count: 1, Per: time.Second},
		0.1:  {Count: 1, Per: 10 * time.Second},
		1e6:  {Count: 1e6, Per: time.Second},
		1e-3: {Count: 1, Per: 1000 * time.Second},
		2.5:  {Count: 5, Per: 2 * time.Second},
	} {
		if got, err := conf.RateOf(number); err != nil || got != want {
			t.Errorf("%v: %v %v", number, got, err)
		}
	}
	for _, number := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e7, 1e-12} {
		if got, err := conf.RateOf(number); err == nil {
			t.Errorf("%v is read as %v", number, got)
		}
	}
}

func TestRateChecksItsBurst(t *testing.T) {
	month := conf.Rate{Count: 1, Per: 30 * 24 * time.Hour}
	for burst, ok := range map[int64]bool{-1: false, 0: false, 1: true, 1779: true, 1780: false, math.MaxInt64: false} {
		if err := month.Check(burst); (err == nil) != ok {
			t.Errorf("burst %d: %v", burst, err)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	for _, text := range []string{"5/s", "3/10s", "0.1", "1/30d", "0.3333333333333"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := conf.ParseRate(text)
		if err != nil {
			return
		}
		if r.Count < 1 || r.Per < 1 || r.PerSecond() > 1_000_001 {
			t.Fatalf("%q gives %+v", text, r)
		}
		if again, err := conf.ParseRate(r.String()); err != nil || again != r {
			t.Fatalf("%q gives %s, which gives %v, %v", text, r, again, err)
		}
	})
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1m30s": 90 * time.Second, "250ms": 250 * time.Millisecond, "1.5h": 90 * time.Minute, "0s": 0,
	} {
		if got, err := conf.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"600": `write "600s"`, "1.5": `write "1.5s"`, "0": `write "0s"`, "5seconds": `write "5s"`, "5 s": `write "5s"`,
		"10 min": `write "10m"`, "2d": `write "48h"`, "1 hour": `write "1h"`, "3 millis": `write "3ms"`,
		"": "is no duration", "s": "is no duration", "-5s": "is negative", "5x": "is no duration", "1d12h": "is no duration",
		"99999999999h": "is no duration", "1e3s": "is no duration",
	} {
		if got, err := conf.ParseDuration(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %v, want %s", text, got, err, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "512": 512, "512B": 512, "64KiB": 64 << 10, "10MiB": 10 << 20, "2GiB": 2 << 30,
		"1kB": 1000, "1KB": 1000, "1MB": 1e6, "1GB": 1e9, "1.5MiB": 3 << 19,
	} {
		if got, err := conf.ParseSize(text); err != nil || got != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "B", "KiB", "-1", "+1", "1 KiB", "1kib", "1K", "1k", "1M", "1TiB", "0x10", "1e3", "0.3B", "9223372036854775807KiB", "1..5MiB"} {
		if got, err := conf.ParseSize(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func TestParseSpeed(t *testing.T) {
	for text, want := range map[string]int64{"100B/s": 100, "0B/s": 0, "4KiB/s": 4096, "1MB/s": 1e6, "7/s": 7} {
		if got, err := conf.ParseSpeed(text); err != nil || got != want {
			t.Errorf("%s: %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "/s", "100", "100B", "100B/m", "-1B/s", "1.3B/s", "B/s", "100B/s "} {
		if got, err := conf.ParseSpeed(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}
