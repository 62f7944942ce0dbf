package ldaptest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"
)

// Slapd is a real directory, OpenLDAP's slapd, with no entries but those of the test. It needs the program and its schemas where Debian has
// them.
type Slapd struct {
	URL       string // ldap://, which takes StartTLS too
	SecureURL string // ldaps://

	process *os.Process
	ended   <-chan struct{}
	out     output
}

// The root of a Slapd's tree, and who may write to it.
const (
	Suffix       = "dc=example,dc=com"
	rootDN       = "cn=root," + Suffix
	rootPassword = "of the root"
)

// slapdConf is its configuration (slapd.conf(5)): passwords are for binding alone, and who has no name sees nothing.
const slapdConf = `include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
pidfile %[1]s/slapd.pid
argsfile %[1]s/slapd.args
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
TLSCACertificateFile %[2]s
TLSCertificateFile %[3]s
TLSCertificateKeyFile %[4]s
database mdb
maxsize 10485760
suffix "%[5]s"
directory %[1]s/data
rootdn "%[6]s"
rootpw "%[7]s"
dbnosync
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
overlay memberof
`

// StartSlapd starts a directory on free ports of loopback, with the certificate of a server (files in PEM). It ends with the test.
func StartSlapd(t testing.TB, ca, cert, key string) *Slapd {
	t.Helper()
	dir, err := os.MkdirTemp("", "slapd") // t.TempDir's names may be too long for it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "slapd.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, slapdConf, dir, ca, cert, key, Suffix, rootDN, rootPassword), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Slapd{}
	t.Cleanup(s.Kill)
	const tries = 5 // a port that was free a moment ago may be somebody's by now
	for range tries {
		s.URL, s.SecureURL = "ldap://"+freeAddress(t), "ldaps://"+freeAddress(t)
		if s.start(t, conf) {
			return s
		}
	}
	t.Fatalf("slapd does not start:\n%s", s.out.String())
	return nil
}

// start starts the program and waits until it takes its root's password; false when it ended.
func (s *Slapd) start(t testing.TB, conf string) bool {
	t.Helper()
	program := "/usr/sbin/slapd"
	if found, err := exec.LookPath("slapd"); err == nil {
		program = found
	}
	cmd := exec.Command(program, "-f", conf, "-h", s.URL+" "+s.SecureURL, "-d", "0")
	cmd.Stdout, cmd.Stderr = &s.out, &s.out
	if err := cmd.Start(); err != nil {
		t.Fatalf("slapd: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	s.process, s.ended = cmd.Process, ended
	const patience = time.Minute
	for deadline := time.Now().Add(patience); ; {
		c, err := s.root()
		if err == nil {
			c.Close()
			return true
		}
		if time.Now().After(deadline) {
			t.Fatalf("slapd does not answer: %v\n%s", err, s.out.String())
		}
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *Slapd) root() (*ldap.Conn, error) {
	c, err := ldap.DialURL(s.URL)
	if err != nil {
		return nil, err
	}
	if err := c.Bind(rootDN, rootPassword); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Add puts entries into the directory, above before below. A password is set by the directory itself, which keeps a salted digest of it
// (RFC 3062).
func (s *Slapd) Add(t testing.TB, entries ...Entry) {
	t.Helper()
	c, err := s.root()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, e := range entries {
		r := ldap.NewAddRequest(e.DN, nil)
		for name, values := range e.Attributes {
			r.Attribute(name, values)
		}
		if err := c.Add(r); err != nil {
			t.Fatalf("%s: %v", e.DN, err)
		}
		if e.Password == "" {
			continue
		}
		if _, err := c.PasswordModify(ldap.NewPasswordModifyRequest(e.DN, "", e.Password)); err != nil {
			t.Fatalf("password of %s: %v", e.DN, err)
		}
	}
}

// Kill ends the directory at once.
func (s *Slapd) Kill() {
	if s.process != nil {
		_ = s.process.Kill()
		<-s.ended
	}
}

// freeAddress finds a port that was free a moment ago.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// output is what the program prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
