package conf

// Values of Log.Access that are no file.
const (
	AccessStdout = "stdout"
	AccessOff    = "off"
)

// Log is where lines go.
type Log struct {
	Pos    Pos
	Access string // AccessStdout, AccessOff, or a file's path, resolved against the configuration file
	Level  string // "debug", "info", "warn" or "error"
	// Mask names fields whose values scripts never log, beside those that are masked anyway.
	Mask []string
}

// Equal tells whether two say the same, wherever they stand.
func (l Log) Equal(other Log) bool { return same(l, other) }

func defaultLog() Log { return Log{Access: AccessStdout, Level: "info"} }

var logSection = section[Log]{
	text("access", func(l *Log) *string { return &l.Access }, notEmpty),
	oneOf("level", func(l *Log) *string { return &l.Level }, "debug", "info", "warn", "error"),
	list("mask", func(l *Log) *[]string { return &l.Mask }, notEmpty),
}
