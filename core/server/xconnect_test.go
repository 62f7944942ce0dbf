package server_test

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/moongate/moongate/core/server/h2test"
)

// TestExtendedConnectIsAllowedByTheSettings proves what core/xconnect relies on: the order in which Go initialises packages, and net/http's switch.
func TestExtendedConnectIsAllowedByTheSettings(t *testing.T) {
	for on, want := range map[bool]uint32{true: 1, false: 0} {
		set := settings()
		set.WebSockets = on
		s := open(t, handler(say("ok")), set, nil)
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		c, err := h2test.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if strings.Contains(os.Getenv("GODEBUG"), "http2xconnect=0") {
			want = 0
		}
		if got := c.Setting(http2.SettingEnableConnectProtocol); got != want {
			t.Errorf("WebSockets %v: the setting is %d", on, got)
		}
		if c.Setting(http2.SettingMaxConcurrentStreams) != 128 {
			t.Error("the other settings are not what they were")
		}
	}
	if want, told := os.LookupEnv("WANT_GODEBUG"); told && os.Getenv("GODEBUG") != want {
		t.Errorf("GODEBUG is %q, was %q", os.Getenv("GODEBUG"), want)
	}
}

// TestGODEBUGIsLeftAsItWas starts this test program with each.
func TestGODEBUGIsLeftAsItWas(t *testing.T) {
	for _, text := range []string{"", "madvdontneed=1", "http2xconnect=0", "madvdontneed=1,http2xconnect=0", "http2xconnect=1"} {
		c := exec.Command(os.Args[0], "-test.run=^TestExtendedConnectIsAllowedByTheSettings$")
		c.Env = append(os.Environ(), "WANT_GODEBUG="+text, "GODEBUG="+text)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("GODEBUG=%s: %v\n%s", text, err, out)
		}
	}
}
