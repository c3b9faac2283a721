package harness

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"schedrestd/bundled/demo/site"
	"schedrestd/internal/programtest"
	"strings"
	"testing"
	"time"
)

// Frontend is one way to send the gateway requests with a token that acts for
// other users: through a proxy, or directly. A proxy has the token and
// checks passwords. For a direct request, the test itself adds the headers that
// a proxy would add.
type Frontend struct {
	Name    string
	Address string // HOST:PORT
	Headers string // header lines that authenticate a request as the user's
	Proxied bool
}

// ProxyLab is a gateway with proxies in front of it.
type ProxyLab struct {
	*Lab
	Gateway    *Gateway
	TokenOwner string  // owner of the token that the proxies have
	User       Account // the user of the requests
	Socket     string  // path of the gateway's socket
	Frontends  []Frontend
	ProxyUser  string // user, and name of the group, that HAProxy runs as; "" for nobody

	// Register is the path of the register of gateway tokens. If it is "", the proxies
	// have a token of root. Otherwise they get one that acts for the members of the
	// user's group, as PROXY.md says.
	Register string

	env []string // of the gateway
}

// Password is the user's password at the proxies.
const Password = "correct horse"

// NewProxyLab starts a gateway with the given switches of SCHEDRESTD_SECURITY.
// It also starts HAProxy and nginx in front of the gateway, if they are
// installed. The proxies have a token of root, with which a request that loses the
// user's name on its way would be served as root.
func NewProxyLab(t *testing.T, switches ...string) *ProxyLab {
	t.Helper()
	f := &ProxyLab{Lab: NewLab(t)}
	f.TokenOwner = f.Owner
	f.start(t, f.OwnToken, switches)
	return f
}

// NewPortalLab does the same with proxies whose token acts for the members of a
// group, as in PROXY.md.
func NewPortalLab(t *testing.T, switches ...string) *ProxyLab {
	t.Helper()
	f := &ProxyLab{Lab: NewLab(t)}
	f.User = servedUser(t)
	f.AddRegister(t)
	f.start(t, f.portalToken(t), switches)
	return f
}

// AddRegister makes a register of gateway tokens, for the tokens of the proxies.
func (f *ProxyLab) AddRegister(t *testing.T) {
	t.Helper()
	f.Register, f.TokenOwner = filepath.Join(f.Dir, "tokens"), portalUser
	ReplaceFile(t, f.Register, nil, 0o644)
}

// portalUser is the user of the proxies' token in place of HAProxy's own user, which
// not every machine has.
const portalUser = "mail"

// portalSettings replaces the names in a script of PROXY.md.
func (f *ProxyLab) portalSettings(t *testing.T, script string) string {
	t.Helper()
	u, err := user.Lookup(f.User.Name)
	Must(t, err)
	g, err := user.LookupGroupId(u.Gid)
	Must(t, err)
	return Substitute(t, script, `--register /etc/sched/register/tokens`, "--register "+f.Register, `--user haproxy`, "--user "+portalUser, `--act-for students`, "--act-for "+g.Name)
}

// portalToken returns a token like that of the proxies.
func (f *ProxyLab) portalToken(t *testing.T) string {
	t.Helper()
	script, _, _ := strings.Cut(CodeBlock(t, "PROXY.md", "/usr/local/sbin/sched-proxy-token"), "printf")
	path := filepath.Join(t.TempDir(), "token")
	Must(t, f.runScript(t, f.portalSettings(t, script)+"printf %s \"$token\" >"+path))
	text, err := os.ReadFile(path)
	Must(t, err)
	return string(text)
}

func (f *ProxyLab) start(t *testing.T, token string, switches []string) {
	t.Helper()
	f.User = servedUser(t)
	f.Socket = filepath.Join(SocketDir(t, f.Lab), "socket")
	direct := fmt.Sprintf("127.0.0.1:%d", FreePort(t))
	if os.Geteuid() != 0 {
		switches = append(switches, "disable_user_check")
	}
	// The tests compare each answer with the log line of its request. Only with
	// the level debug does a worker log every request.
	f.env = append(f.GatewayEnv(), "SCHEDRESTD_SECURITY="+strings.Join(switches, ","), "SCHEDRESTD_DEBUG=debug")
	f.Frontends = []Frontend{{Name: "directly", Address: direct,
		Headers: "X-SCHED-USER-TOKEN: " + token + "\r\nX-SCHED-USER-NAME: " + f.User.Name + "\r\n"}}
	f.StartGateway(t)
	f.StartHAProxy(t, "haproxy", HAProxyExample(t))
	f.StartHAProxy(t, "careless haproxy", carelessConfig(t, "haproxy.cfg"))
	f.StartNginx(t, "nginx", NginxExample(t))
	f.StartNginx(t, "careless nginx", carelessConfig(t, "nginx.conf"))
}

// GatewayEnv returns the variables of a gateway that accepts the token of the
// proxies. The users of the tests have low uids.
func (f *ProxyLab) GatewayEnv() []string {
	if f.Register == "" {
		return nil
	}
	return []string{"SCHEDRESTD_TOKEN_REGISTER=" + f.Register, "SCHEDRESTD_MIN_UID=1"}
}

// StartGateway starts the gateway behind the proxies. A test calls it to restart
// the gateway.
func (f *ProxyLab) StartGateway(t *testing.T) {
	t.Helper()
	f.Gateway = f.Lab.StartGateway(t, f.env, f.Frontends[0].Address, "unix:"+f.Socket)
}

// servedUser returns a user other than the one that the daemons run as. If this
// process does not run as root, the returned user's jobs can't run.
func servedUser(t *testing.T) Account {
	t.Helper()
	if os.Geteuid() == 0 {
		return OrdinaryUser(t)
	}
	for _, name := range []string{"games", "daemon", "bin", "mail", "root"} {
		if u, err := user.Lookup(name); err == nil && u.Uid != fmt.Sprint(os.Geteuid()) {
			return Account{Name: name}
		}
	}
	t.Skip("this machine has no other user to act as")
	return Account{}
}

func carelessConfig(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root, "integration/harness/testdata/proxy", "careless-"+name))
	Must(t, err)
	return string(text)
}

// Example returns a configuration in deploy/examples.
func Example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root, "deploy/examples", name))
	Must(t, err)
	return string(text)
}

// HAProxyExample returns the example for HAProxy, changed for a single gateway as
// its first lines say.
func HAProxyExample(t *testing.T) string {
	t.Helper()
	return Substitute(t, Example(t, "haproxy.cfg"), `^\tserver two .*$`, "",
		` :8443 ssl crt /etc/haproxy/site\.pem.*$`, fmt.Sprintf(" 127.0.0.1:%d", FreePort(t)))
}

// NginxExample returns the example for nginx, changed for a single gateway on
// this machine as its first lines say.
func NginxExample(t *testing.T) string {
	t.Helper()
	return Substitute(t, Example(t, "nginx.conf"), `192\.0\.2\.1[12]:6821`, "unix:/run/schedrestd/socket", `proxy_pass https:`, "proxy_pass http:", `^\t\tproxy_ssl_.*$`, "",
		`^\tlisten 8443 ssl.*;$`, fmt.Sprintf("\tlisten 127.0.0.1:%d;", FreePort(t)))
}

// haveProgram reports whether a program of another project is installed. Unlike
// FindProgram, it skips only a subtest if the program is missing.
func haveProgram(t *testing.T, name, pkg string) (ok bool) {
	t.Run(name, func(t *testing.T) {
		FindProgram(t, name, pkg)
		ok = true
	})
	return ok
}

// basicAuth returns the header line that authenticates the user to a proxy.
func (f *ProxyLab) basicAuth() string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(f.User.Name+":"+Password)) + "\r\n"
}

// StartHAProxy starts HAProxy with the given sections of its configuration.
func (f *ProxyLab) StartHAProxy(t *testing.T, name, sections string) {
	t.Helper()
	if !haveProgram(t, "haproxy", "haproxy") {
		return
	}
	dir, address := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", FreePort(t))
	tokens, config := filepath.Join(dir, "token.map"), filepath.Join(dir, "haproxy.cfg")
	socket, global := f.Socket, "global\n"
	if os.Geteuid() == 0 { // as in Debian's configuration, HAProxy runs in a chroot, which changes the socket's path
		socket = strings.TrimPrefix(f.Socket, f.Dir)
		global = "global\n\tchroot " + f.Dir + "\n\tuser " + cmp.Or(f.ProxyUser, "nobody") + "\n\tgroup " + cmp.Or(f.ProxyUser, site.NobodyGroup()) + "\n"
	}
	sections = Substitute(t, sections, `^\tuser alice password .*$`, "\tuser "+f.User.Name+` insecure-password "`+Password+`"`,
		` :443 ssl crt /etc/haproxy/site\.pem.*$`, " "+address, `/etc/haproxy/sched-token\.map`, tokens, `/run/schedrestd/socket`, socket)
	f.writeToken(t, CodeBlock(t, "PROXY.md", "/usr/local/sbin/sched-proxy-token"), "/etc/haproxy/sched-token.map", tokens)
	Must(t, os.WriteFile(config, []byte(global+HAProxyDefaults+sections), 0o600))
	f.startProxy(t, name, address, FindProgram(t, "haproxy", "haproxy"), "-db", "-f", config)
}

// StartNginx starts nginx with a configuration whose http section contains
// parts.
func (f *ProxyLab) StartNginx(t *testing.T, name, parts string) {
	t.Helper()
	if !haveProgram(t, "nginx", "nginx-light") {
		return
	}
	dir, address := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", FreePort(t))
	tokens, users, config := filepath.Join(dir, "token.conf"), filepath.Join(dir, "users"), filepath.Join(dir, "nginx.conf")
	parts = Substitute(t, parts, `^\tlisten 443 ssl.*;$`, "\tlisten "+address+";", `^\tssl_certificate.*$`, "",
		`/etc/nginx/sched-users`, users, `/etc/nginx/sched-token\.conf`, tokens, `/run/schedrestd/socket`, f.Socket)
	Must(t, os.WriteFile(users, []byte(f.User.Name+":{PLAIN}"+Password+"\n"), 0o600))
	script, _, _ := strings.Cut(CodeBlock(t, "PROXY.md", "/usr/local/sbin/sched-proxy-token"), "printf")
	f.writeToken(t, script+CodeBlock(t, "PROXY.md", "/usr/local/sbin/sched-proxy-token, for nginx"), "/etc/nginx/sched-token.conf", tokens)
	Must(t, os.WriteFile(config, []byte(NginxConfig(dir, parts)), 0o600))
	f.startProxy(t, name, address, FindProgram(t, "nginx", "nginx-light"), "-e", "stderr", "-c", config, "-g", "daemon off;")
}

// HAProxyDefaults is the section "defaults" of HAProxy's configuration. The
// documentation does not show it, because the distribution provides it.
const HAProxyDefaults = "defaults\n\ttimeout connect 10s\n\ttimeout client 50s\n\ttimeout server 50s\n\n"

// NginxConfig returns a configuration whose http section contains parts. nginx
// keeps its files in dir. It runs as a single process, so that no other process
// can outlive the test.
func NginxConfig(dir, parts string) string {
	text := "master_process off;\npid " + dir + "/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += kind + "_temp_path " + dir + "/" + kind + ";\n"
	}
	return text + parts + "}\n"
}

// writeToken runs a script from a page of the documentation. The script
// writes a token to a file, from which the proxy reads it. path is the path of
// this file in the script. writeToken replaces it with testPath. Without a register,
// the script creates a token of root instead, as the page says.
func (f *ProxyLab) writeToken(t *testing.T, script, path, testPath string) {
	t.Helper()
	if f.Register == "" {
		script = Substitute(t, script, `token=\$\(schedctl token create (?s:.*?)\)`, "token=$(schedctl token lifespan=172800)")
	} else {
		script = f.portalSettings(t, script)
	}
	Must(t, f.runScript(t, Substitute(t, script, regexp.QuoteMeta(path), testPath)))
	info, err := os.Stat(testPath)
	if Must(t, err); info.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %o", path, info.Mode().Perm())
	}
}

// runScript runs a script from a document. The programs in the script's PATH
// include schedctl, and a systemctl that does nothing.
func (l *Lab) runScript(t *testing.T, script string, variables ...string) error {
	t.Helper()
	stubs := t.TempDir()
	Must(t, programtest.Write(filepath.Join(stubs, "systemctl"), []byte("#!/bin/sh\n"), 0o755))
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append([]string{"PATH=" + stubs + ":" + Bin + ":/usr/bin:/bin", "SCHED_CONF=" + l.Conf()}, variables...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s\n%s", err, script, out)
	}
	return nil
}

// startProxy starts a proxy that listens on address.
func (f *ProxyLab) startProxy(t *testing.T, name, address, path string, args ...string) {
	t.Helper()
	f.StartProgram(t, name, address, path, args...)
	f.Frontends = append(f.Frontends, Frontend{name, address, f.basicAuth(), true})
}

// StartProgram starts a program of another project, and returns when the
// program listens on address.
func (l *Lab) StartProgram(t *testing.T, name, address, path string, args ...string) {
	t.Helper()
	program := site.Program{Name: name, Path: path, Args: args, Log: l.Log(name)}
	p := site.Part{Program: program, Address: address, Check: Accepts(address)}
	d, err := site.Start(p)
	Must(t, err)
	t.Cleanup(func() { d.Stop() })
	if err := d.WaitReady(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(d.LastLines(20), "\n"))
	}
}

// Accepts returns a check that succeeds when address accepts connections.
func Accepts(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	}
}

// Exchange sends text unchanged and reads at most maxAnswers answers. It
// returns earlier if the server closes the connection or sends no more.
func Exchange(t *testing.T, address string, maxAnswers int, text string) []Answer {
	t.Helper()
	c, err := net.Dial("tcp", address)
	Must(t, err)
	defer c.Close()
	_, _ = io.WriteString(c, text) // a proxy that refuses the text may have closed the connection
	var answers []Answer
	for r := bufio.NewReader(c); len(answers) < maxAnswers; {
		limit := time.Minute
		if len(answers) > 0 {
			limit = time.Second // an answer that is missed here is found in the gateway's log
		}
		Must(t, c.SetReadDeadline(time.Now().Add(limit)))
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return answers
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return answers
		}
		a := Answer{Status: resp.StatusCode, Header: resp.Header, Text: string(text)}
		_ = json.Unmarshal(text, &a.Body)
		if answers = append(answers, a); resp.Close {
			break
		}
	}
	return answers
}

// UserOrStatus returns the result of a request. For a request that succeeded,
// this is "as NAME", with the name of the user in the answer. Otherwise it is
// the status.
func (a Answer) UserOrStatus() string {
	if a.Status == http.StatusOK {
		return fmt.Sprintf("as %v", a.Get("meta", "client", "user"))
	}
	return fmt.Sprint(a.Status)
}

// StopAndCountUsers stops the gateway. For each user, it returns the number of
// requests that succeeded, according to the gateway's log, without the checks of
// load balancers.
func (g *Gateway) StopAndCountUsers() map[string]int {
	g.T.Helper()
	Must(g.T, g.Stop())
	users := map[string]int{}
	answered := regexp.MustCompile(`(?m)worker=\d+ .*msg=request .*\buser=("[^"]*"|\S*) .*\bstatus=2\d\d `)
	for _, m := range answered.FindAllStringSubmatch(g.Logged(), -1) {
		if !strings.Contains(m[0], " route=readyz ") {
			users[strings.Trim(m[1], `"`)]++
		}
	}
	return users
}
