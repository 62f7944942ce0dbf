package stdlib

import (
	"strconv"
	"time"
)

// strftime appends t after a format of C's strftime in the C locale. What it does not know stays as it is. It stops when b has
// become longer than limit.
func strftime(b []byte, format string, t time.Time, limit int) []byte {
	for i := 0; i < len(format) && len(b) <= limit; i++ {
		if format[i] != '%' || i+1 == len(format) {
			b = append(b, format[i])
			continue
		}
		i++
		b = conversion(b, format[i], t)
	}
	return b
}

// layouts are the conversions that Go's own layouts can express.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02", 'D': "01/02/06",
	'e': "_2", 'F': "2006-01-02", 'H': "15", 'I': "03", 'm': "01", 'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04", 'S': "05",
	'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'z': "-0700", 'Z': "MST",
}

func conversion(b []byte, c byte, t time.Time) []byte {
	if c == 'Z' && t.Location() == time.UTC {
		return append(b, "GMT"...) // as C names it
	}
	if layout, ok := layouts[c]; ok {
		return t.AppendFormat(b, layout)
	}
	isoYear, isoWeek := t.ISOWeek()
	monday := (int(t.Weekday()) + 6) % 7 // days since Monday
	switch c {
	case 'Y':
		return strconv.AppendInt(b, int64(t.Year()), 10)
	case 'C':
		return padded(b, t.Year()/100, 2)
	case 'j':
		return padded(b, t.YearDay(), 3)
	case 'u':
		return padded(b, monday+1, 1)
	case 'w':
		return padded(b, int(t.Weekday()), 1)
	case 'U':
		return padded(b, (t.YearDay()+6-int(t.Weekday()))/7, 2)
	case 'W':
		return padded(b, (t.YearDay()+6-monday)/7, 2)
	case 'V':
		return padded(b, isoWeek, 2)
	case 'G':
		return padded(b, isoYear, 4)
	case 'g':
		return padded(b, isoYear%100, 2)
	case 's':
		return strconv.AppendInt(b, t.Unix(), 10)
	case 'n':
		return append(b, '\n')
	case 't':
		return append(b, '\t')
	case '%':
		return append(b, '%')
	}
	return append(b, '%', c)
}

func padded(b []byte, n, width int) []byte {
	text := strconv.Itoa(n)
	for i := len(text); i < width; i++ {
		b = append(b, '0')
	}
	return append(b, text...)
}
