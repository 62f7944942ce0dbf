package conf

import (
	"fmt"
	"strings"
)

// The encodings of answers.
const (
	Gzip   = "gzip"
	Brotli = "br"
	Zstd   = "zstd"
)

// Compression says which answers of a route go out encoded.
type Compression struct {
	Pos       Pos
	On        bool     `key:"-"` // there is a [route.compression]
	Types     []string // media types in lower case, "text/*" and "*/*" among them
	MinSize   int64    `unit:"bytes"`
	Encodings []string // those on offer, the preferred one first
}

func defaultCompression() Compression {
	return Compression{
		Types: []string{"text/html", "text/css", "text/plain", "text/xml", "text/javascript", "application/javascript", "application/json",
			"application/xml", "application/wasm", "image/svg+xml"},
		MinSize:   1 << 10,
		Encodings: []string{Zstd, Brotli, Gzip},
	}
}

var compressionSection = section[Compression]{
	list("types", func(c *Compression) *[]string { return &c.Types }, mediaType),
	size("min_size", func(c *Compression) *int64 { return &c.MinSize }, 0, largestBuffer),
	list("encodings", func(c *Compression) *[]string { return &c.Encodings }, amongst(Zstd, Brotli, Gzip)),
}

// bindCompression begins a route's section with the defaults.
func bindCompression(r *Route, p Pos) *Compression {
	r.Compression = defaultCompression()
	r.Compression.Pos, r.Compression.On = p, true
	return &r.Compression
}

// checkCompression refuses lists with which nothing is ever encoded.
func (b *binder) checkCompression(path string, c *Compression) {
	for _, list := range []struct {
		key   string
		items []string
		want  string
	}{{"types", c.Types, `["text/html"]`}, {"encodings", c.Encodings, `["gzip"]`}} {
		if key := path + "." + list.key; b.written(key) && len(list.items) == 0 && !b.faulty(key) {
			b.errs.Add(b.pos[key], key, "is empty, so nothing is ever compressed: write %s, or take [route.compression] away", list.want)
		}
	}
}

// mediaType checks type/subtype without parameters, where the subtype or both may be *.
func mediaType(text string) string {
	kind, sub, ok := strings.Cut(text, "/")
	switch {
	case text != strings.ToLower(text):
		return fmt.Sprintf("types are written in lower case: %q", strings.ToLower(text))
	case !ok || !isToken(kind) || !isToken(sub) || len(text) > 64 || kind == "*" && sub != "*" || sub != "*" && strings.Contains(sub, "*"):
		return fmt.Sprintf(`%q is no media type: write "text/html", "text/*" or "*/*"`, shorten(text))
	}
	return ""
}
