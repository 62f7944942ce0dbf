package conf

import "strconv"

// Pos is a place in a configuration file or a script. Line counts from 1; 0 means the file as a whole.
type Pos struct {
	File string
	Line int
}

// String gives "file:line", or the file alone when there is no line.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}
