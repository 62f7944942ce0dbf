//go:build e2e

package main

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moongate/moongate/core/auth/ldaptest"
	"github.com/moongate/moongate/core/redis/redistest"
)

// servers are real programs that a script has started beside the gateway. They end with the script.
type servers struct {
	t        testing.TB
	redis    *redistest.Server
	slapd    *ldaptest.Slapd
	provider string // issuer
}

type serversKey struct{}

func serversOf(ts *testscript.TestScript) *servers { return ts.Value(serversKey{}).(*servers) }

// TestE2EServers plays the scripts of testdata/e2e_servers, with the words of testdata/e2e and those of its README.
func TestE2EServers(t *testing.T) {
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	words := maps.Clone(commands)
	words["redis"], words["slapd"], words["openid"] = redisCommand, slapdCommand, openidCommand
	testscript.Run(t, testscript.Params{
		Dir: "testdata/e2e_servers",
		Setup: func(env *testscript.Env) error {
			s := &servers{t: env.T().(testing.TB)}
			env.Values[serversKey{}] = s
			c := redistest.NewCertificates(s.t)
			for name, file := range map[string]string{"CA": c.CA, "SERVER_CRT": c.ServerCert, "SERVER_KEY": c.ServerKey, "CLIENT_CRT": c.ClientCert, "CLIENT_KEY": c.ClientKey} {
				env.Setenv(name, file)
			}
			return setUp(env, checkout)
		},
		Cmds:                words,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// redisCommand starts a redis-server, or sends it a command.
func redisCommand(ts *testscript.TestScript, neg bool, args []string) {
	s := serversOf(ts)
	if neg || len(args) == 0 || (args[0] == "start") != (s.redis == nil) {
		ts.Fatalf("usage: redis start, then redis kill|restart|until VALUE COMMAND...|COMMAND...")
	}
	switch args[0] {
	case "start":
		s.redis = redistest.StartTLS(s.t, redistest.Certificates{CA: ts.Getenv("CA"), ServerCert: ts.Getenv("SERVER_CRT"), ServerKey: ts.Getenv("SERVER_KEY")})
		ts.Setenv("REDIS", s.redis.Address)
		ts.Setenv("REDIS_TLS", s.redis.SecureAddress)
	case "kill":
		s.redis.Kill()
	case "restart":
		s.redis.Restart()
	case "until": // what a request held comes back behind its answer
		if len(args) < 3 || !until(func() bool { return s.redis.Do(args[2:]...) == args[1] }) {
			ts.Fatalf("redis %s never says %s", strings.Join(args[2:], " "), args[1])
		}
	default:
		said := s.redis.Do(args...)
		_, err := ts.Stdout().Write([]byte(said + "\n"))
		ts.Check(err)
	}
}

// slapdCommand starts a slapd in which tom (hunter2) is of the group ops and eve (secret) is not, or ends it.
func slapdCommand(ts *testscript.TestScript, neg bool, args []string) {
	s := serversOf(ts)
	switch {
	case !neg && len(args) == 1 && args[0] == "kill" && s.slapd != nil:
		s.slapd.Kill()
		return
	case neg || len(args) != 1 || args[0] != "start":
		ts.Fatalf("usage: slapd start, then slapd kill")
	}
	s.slapd = ldaptest.StartSlapd(s.t, ts.Getenv("CA"), ts.Getenv("SERVER_CRT"), ts.Getenv("SERVER_KEY"))
	person := func(uid, password string) ldaptest.Entry {
		return ldaptest.Entry{DN: "uid=" + uid + ",ou=people," + ldaptest.Suffix, Password: password,
			Attributes: map[string][]string{"objectClass": {"inetOrgPerson"}, "uid": {uid}, "cn": {uid}, "sn": {uid}, "mail": {uid + "@example.com"}}}
	}
	s.slapd.Add(s.t,
		ldaptest.Entry{DN: ldaptest.Suffix, Attributes: map[string][]string{"objectClass": {"dcObject", "organization"}, "dc": {"example"}, "o": {"Example"}}},
		ldaptest.Entry{DN: "cn=gateway," + ldaptest.Suffix, Password: "of the gateway", Attributes: map[string][]string{"objectClass": {"organizationalRole", "simpleSecurityObject"},
			"cn": {"gateway"}, "userPassword": {"x"}}},
		ldaptest.Entry{DN: "ou=people," + ldaptest.Suffix, Attributes: map[string][]string{"objectClass": {"organizationalUnit"}, "ou": {"people"}}},
		person("tom", "hunter2"), person("eve", "secret"),
		ldaptest.Entry{DN: "cn=ops," + ldaptest.Suffix, Attributes: map[string][]string{"objectClass": {"groupOfNames"}, "cn": {"ops"}, "member": {"uid=tom,ou=people," + ldaptest.Suffix}}},
	)
	ts.Setenv("LDAP", s.slapd.URL)
	ts.Setenv("LDAPS", s.slapd.SecureURL)
}

// openidProgram builds testdata/provider once.
var openidProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "openid")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "provider")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Dir = "testdata/provider"
	if out, err := build.CombinedOutput(); err != nil {
		return "", &exec.Error{Name: "go build: " + string(out), Err: err}
	}
	return file, nil
})

// openidCommand starts an OpenID provider, changes its keys, or gets a token.
func openidCommand(ts *testscript.TestScript, neg bool, args []string) {
	s := serversOf(ts)
	if neg || len(args) == 0 || (args[0] == "start") != (s.provider == "") {
		ts.Fatalf("usage: openid start, then openid rotate|forget, openid token NAME CLIENT")
	}
	switch args[0] {
	case "start":
		s.startProvider(ts)
		ts.Setenv("OPENID", s.provider)
	case "token":
		ts.Setenv(args[1], s.token(ts, args[2]))
	default:
		resp, err := http.Post(s.provider+"/"+args[0], "", nil)
		ts.Check(err)
		ts.Check(resp.Body.Close())
		if resp.StatusCode != http.StatusOK {
			ts.Fatalf("openid %s: %s", args[0], resp.Status)
		}
	}
}

func (s *servers) startProvider(ts *testscript.TestScript) {
	file, err := openidProgram()
	ts.Check(err)
	cmd := exec.Command(file)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	s.provider = strings.TrimSpace(line)
}

// token gets a token by the grant of client credentials (RFC 6749, section 4.4).
func (s *servers) token(ts *testscript.TestScript, client string) string {
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"openid profile"}}
	r, err := http.NewRequest("POST", s.provider+"/oauth/token", strings.NewReader(form.Encode()))
	ts.Check(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(client, "verysecret")
	resp, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer resp.Body.Close()
	var said struct {
		Token string `json:"access_token"`
	}
	ts.Check(json.NewDecoder(resp.Body).Decode(&said))
	if said.Token == "" {
		ts.Fatalf("no token for %s: %s", client, resp.Status)
	}
	return said.Token
}
