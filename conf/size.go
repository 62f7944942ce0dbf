package conf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizeUnits are the units of a size in bytes. Longer names stand before their endings.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"B", 1}, {"", 1},
}

// ParseSize reads a number of bytes: "64KiB", "10MiB", "1GiB" (powers of 1024), "1kB", "1MB", "1GB" (powers of 1000),
// "512B" or "512". Negative sizes and broken numbers are refused, except that "1.5MiB" is read when it is whole bytes.
func ParseSize(text string) (int64, error) {
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(number, 10, 63); err == nil {
			if int64(n) > math.MaxInt64/unit.bytes {
				return 0, fmt.Errorf("%q is too large a size", text)
			}
			return int64(n) * unit.bytes, nil
		}
		if f, err := strconv.ParseFloat(number, 64); err == nil && isDecimal(number) {
			if bytes := f * float64(unit.bytes); bytes == math.Trunc(bytes) && bytes < 1<<53 {
				return int64(bytes), nil
			}
		}
		break
	}
	return 0, fmt.Errorf(`%q is no size: write "64KiB", "10MiB", "1MB" or a number of bytes`, text)
}

// ParseSpeed reads a number of bytes each second: a size with "/s" behind it, "100B/s" or "1MiB/s".
func ParseSpeed(text string) (int64, error) {
	if size, ok := strings.CutSuffix(text, "/s"); ok {
		if n, err := ParseSize(size); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf(`%q is no number of bytes each second: write "100B/s", "4KiB/s" or "0B/s"`, text)
}

// formatSpeed renders what ParseSpeed reads.
func formatSpeed(bytes int64) string { return formatSize(bytes) + "/s" }

// formatSize renders a size in the largest unit that divides it.
func formatSize(bytes int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes != 0 && bytes%unit.bytes == 0 {
			return strconv.FormatInt(bytes/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}
