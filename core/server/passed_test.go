package server_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moongate/moongate/core/server"
)

// file gives a socket as it would be passed to a process.
func file(t *testing.T, socket interface{ File() (*os.File, error) }) *os.File {
	t.Helper()
	f, err := socket.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func listening(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// accepts dials and tells whether a listener gets that connection.
func accepts(t *testing.T, l net.Listener, network, address string) bool {
	t.Helper()
	nc, err := net.Dial(network, address)
	if err != nil {
		t.Error(err)
		return false
	}
	defer nc.Close()
	got, err := l.Accept()
	if err != nil {
		t.Error(err)
		return false
	}
	defer got.Close()
	return network == "unix" || got.RemoteAddr().String() == nc.LocalAddr().String()
}

func TestListenersGetTheSocketsThatWerePassedForThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	loopback, unix, all := listening(t, "tcp", "127.0.0.1:0"), listening(t, "unix", path), listening(t, "tcp", ":0")
	p, err := server.NewPassed([]*os.File{file(t, loopback.(*net.TCPListener)), file(t, unix.(*net.UnixListener)), file(t, all.(*net.TCPListener))})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(all.Addr().String())
	if got := p.Unused(); len(got) != 3 || !slices.Contains(got, "unix:"+path) {
		t.Errorf("unused: %v", got)
	}
	for _, test := range []struct{ address, network, dial string }{
		{loopback.Addr().String(), "tcp", loopback.Addr().String()},
		{"unix:" + path, "unix", path},
		{":" + port, "tcp", "127.0.0.1:" + port},
	} {
		for range 2 { // closed and opened anew it is the same socket
			l, err := p.Listen(test.address, 0o600)
			if err != nil {
				t.Fatalf("%s: %v", test.address, err)
			}
			if !accepts(t, l, test.network, test.dial) {
				t.Errorf("%s: the connection came elsewhere", test.address)
			}
			if got := l.Addr().String(); got != test.address && test.network == "unix" {
				t.Errorf("%s is called %s", test.address, got)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if got := p.Unused(); len(got) != 3 {
		t.Errorf("unused when all are closed again: %v", got)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("the file of another's socket went with the listener")
	}
	// What has another host, or lets the system choose, is not what was passed.
	for _, address := range []string{"127.0.0.1:0", "127.0.0.2:" + portOf(loopback)} {
		l, err := p.Listen(address, 0)
		if err != nil {
			t.Fatal(err)
		}
		if l.Addr().String() == loopback.Addr().String() {
			t.Errorf("%s got %s", address, l.Addr())
		}
		l.Close()
	}
}

// Two that had one socket would get its connections by chance: those of one that asks for certificates, or of the admin listener, would come to
// another that does not.
func TestAPassedSocketHasOneListenerAtATime(t *testing.T) {
	l := listening(t, "tcp", "127.0.0.1:0")
	p, err := server.NewPassed([]*os.File{file(t, l.(*net.TCPListener))})
	if err != nil {
		t.Fatal(err)
	}
	one, err := p.Open(l.Addr().String(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Unused(); got != nil {
		t.Errorf("unused: %v", got)
	}
	for _, name := range []string{l.Addr().String(), "[::ffff:127.0.0.1]:" + portOf(l)} {
		if other, err := p.Listen(name, 0); err == nil {
			other.Close()
			t.Errorf("a second listener, on %s, got the socket too", name)
		}
	}
	one.Close()
	again, err := p.Listen(l.Addr().String(), 0)
	if err != nil {
		t.Fatal(err)
	}
	one.Close() // for the second time: it gives back what it has no more
	if other, err := p.Listen(l.Addr().String(), 0); err == nil {
		other.Close()
		t.Error("a second listener got the socket once the first was closed twice")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func portOf(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestOnlySocketsThatListenCanBePassed(t *testing.T) {
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	l := listening(t, "tcp", "127.0.0.1:0")
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	plain, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for name, f := range map[string]*os.File{"packets": file(t, packets.(*net.UDPConn)), "a connection": file(t, nc.(*net.TCPConn)), "a file": plain} {
		if _, err := server.NewPassed([]*os.File{f}); err == nil {
			t.Errorf("%s was taken for a socket that listens", name)
		} else {
			t.Log(name, err)
		}
	}
}
