package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"time"
)

// The measures of the drawing.
const (
	svgWidth, svgHeight = 960, 320
	svgLeft, svgRight   = 60, 20
	svgTop, svgBottom   = 40, 50
)

// draw draws what passed and what was refused over time, as bars on each other.
func (r *replayed) draw(name string) []byte {
	most := 1
	for _, s := range r.steps {
		most = max(most, s.passed+s.refused)
	}
	width := float64(svgWidth-svgLeft-svgRight) / steps
	scale := float64(svgHeight-svgTop-svgBottom) / float64(most)
	base := float64(svgHeight - svgBottom)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", svgWidth, svgHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", svgWidth, svgHeight)
	fmt.Fprintf(&b, `<text x="%d" y="22">%s: %d passed, %d refused, each bar is %s</text>`+"\n", svgLeft, escaped(name), r.passed, r.refused,
		(r.to.Sub(r.from) / steps).Round(time.Millisecond))
	for i, s := range r.steps {
		x := svgLeft + float64(i)*width
		bar(&b, x, base-float64(s.passed)*scale, width, float64(s.passed)*scale, "#4a90d9")
		bar(&b, x, base-float64(s.passed+s.refused)*scale, width, float64(s.refused)*scale, "#d0021b")
	}
	fmt.Fprintf(&b, `<path d="M%d %d V%v H%d" fill="none" stroke="black"/>`+"\n", svgLeft, svgTop, base, svgWidth-svgRight)
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%d</text>`+"\n", svgLeft-6, svgTop+4, most)
	fmt.Fprintf(&b, `<text x="%d" y="%v" text-anchor="end">0</text>`+"\n", svgLeft-6, base)
	for i := range 5 {
		at := r.from.Add(r.to.Sub(r.from) / 4 * time.Duration(i))
		anchor := [...]string{"start", "middle", "middle", "middle", "end"}[i]
		fmt.Fprintf(&b, `<text x="%v" y="%v" text-anchor="%s">%s</text>`+"\n", svgLeft+float64(svgWidth-svgLeft-svgRight)/4*float64(i), base+18, anchor,
			at.Format("2006-01-02 15:04:05"))
	}
	fmt.Fprintf(&b, `<rect x="%d" y="%d" width="12" height="12" fill="#4a90d9"/><text x="%d" y="%d">passed</text>`+"\n", svgLeft, svgHeight-18, svgLeft+18, svgHeight-8)
	fmt.Fprintf(&b, `<rect x="%d" y="%d" width="12" height="12" fill="#d0021b"/><text x="%d" y="%d">refused</text>`+"\n</svg>\n", svgLeft+90, svgHeight-18, svgLeft+108,
		svgHeight-8)
	return b.Bytes()
}

func bar(b *bytes.Buffer, x, y, width, height float64, fill string) {
	if height > 0 {
		fmt.Fprintf(b, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"/>`+"\n", x, y, width, height, fill)
	}
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}
