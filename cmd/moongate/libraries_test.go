package main

import (
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibrariesWriteNoLinesOfTheirOwn: what they say about peers that break a protocol, as often as those like, is a line of the log like any other
// and below its level.
func TestLibrariesWriteNoLinesOfTheirOwn(t *testing.T) {
	t.Cleanup(func() {
		log.SetOutput(os.Stderr)
		log.SetFlags(log.LstdFlags)
	})
	for level, shown := range map[string]bool{"debug": true, "info": false} {
		path := filepath.Join(t.TempDir(), "gateway.toml")
		text := "[log]\naccess = \"off\"\nlevel = \"" + level + "\"\n[[route]]\nname = \"all\"\npath = \"/**\"\nupstream = \"http://127.0.0.1:1\"\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		lines := newTranscript()
		a, err := openApp(runOptions{config: path, listen: "127.0.0.1:0", admin: "127.0.0.1:0"}, streams{io.Discard, lines})
		if err != nil {
			t.Fatal(err)
		}
		log.Print("protocol error: a peer's")
		a.close()
		if got := lines.String(); strings.Contains(got, "level=DEBUG msg=\"protocol error: a peer's\"\n") != shown || !shown && strings.Contains(got, "peer") {
			t.Errorf("at %s: %s", level, got)
		}
	}
}
