package conf

import "strconv"

// Pos is a place in a configuration file or a script. Line and Column count from 1; 0 means the file, or the line, as a whole.
type Pos struct {
	File   string
	Line   int
	Column int // in bytes
}

// String gives "file:line:column", without what is not known.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	if p.Column == 0 {
		return p.File + ":" + strconv.Itoa(p.Line)
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}
