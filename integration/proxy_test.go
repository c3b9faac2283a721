package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/demo/site"
)

// front is a way to the gateway with a token that may act for all, its holder's: a proxy that has it and knows users by their
// passwords, or none, and then the request itself has what a proxy would add.
type front struct {
	name    string
	address string // HOST:PORT
	adds    string // header lines with which a request is the user's
	proxied bool
}

// fronts are a gateway and what stands before it.
type fronts struct {
	*lab
	gate   *gate
	holder string  // whose token the proxies have
	user   account // who asks; somebody else
	socket string  // the gateway's
	ways   []front
}

// password is the user's at the proxies.
const password = "correct horse"

// newFronts starts a gateway with these switches of SCHEDRESTD_SECURITY, and the proxies that are installed.
func newFronts(t *testing.T, switches ...string) *fronts {
	t.Helper()
	f := &fronts{lab: newLab(t)}
	f.holder, f.user = f.Owner, servedUser(t)
	f.socket = filepath.Join(servedDir(t, f.lab), "socket")
	direct := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	if os.Geteuid() != 0 {
		switches = append(switches, "disable_user_check")
	}
	f.gate = f.lab.gate(t, []string{"SCHEDRESTD_SECURITY=" + strings.Join(switches, ",")}, direct, "unix:"+f.socket)
	f.ways = []front{{name: "directly", address: direct,
		adds: "X-SCHED-USER-TOKEN: " + f.userToken + "\r\nX-SCHED-USER-NAME: " + f.user.name + "\r\n"}}
	f.haproxy(t, "haproxy", codeBlock(t, "PROXY.md", "/etc/haproxy/haproxy.cfg"))
	f.haproxy(t, "careless haproxy", careless(t, "haproxy.cfg"))
	f.nginx(t, "nginx", codeBlock(t, "PROXY.md", "/etc/nginx/conf.d/sched.conf"))
	f.nginx(t, "careless nginx", careless(t, "nginx.conf"))
	return f
}

// servedUser is somebody else than who the daemons run as. Without root no job can run as he.
func servedUser(t *testing.T) account {
	t.Helper()
	if os.Geteuid() == 0 {
		return someUser(t)
	}
	for _, name := range []string{"games", "daemon", "bin", "mail", "root"} {
		if u, err := user.Lookup(name); err == nil && u.Uid != fmt.Sprint(os.Geteuid()) {
			return account{name: name}
		}
	}
	t.Skip("this machine has no other user to act as")
	return account{}
}

func careless(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "proxy", "careless-"+name))
	must(t, err)
	return string(text)
}

// codeBlock is the block of a document's that says in its first lines which file it is.
func codeBlock(t *testing.T, document, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", document))
	must(t, err)
	for _, m := range regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		first, _, _ := strings.Cut(strings.TrimPrefix(m[1], "#!/bin/sh\n"), "\n")
		if first == "# "+file || strings.HasPrefix(first, "# "+file+", after ") {
			return m[1]
		}
	}
	t.Fatalf("%s has no block # %s", document, file)
	return ""
}

// replaced is text with each old replaced by its new one. All of them have to be there: what a document
// shows is run as it stands, but for these.
func replaced(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		old := regexp.MustCompile("(?m)" + pairs[i])
		if !old.MatchString(text) {
			t.Fatalf("no %s in:\n%s", pairs[i], text)
		}
		text = old.ReplaceAllLiteralString(text, pairs[i+1])
	}
	return text
}

// program is the path of a foreign program. Where it is missing the test is skipped, but not where
// continuous integration runs as root and has installed all of them.
func program(t *testing.T, name, pkg string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(path); err == nil {
			return path
		}
	}
	missing(t, fmt.Sprintf("%s is not here; apt-get install %s", name, pkg))
	return ""
}

// missing skips a test for what this machine has not; where it had to be there, the test fails.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" && os.Geteuid() == 0 {
		t.Fatal(what)
	}
	t.Skip(what)
}

// here tells whether a foreign program is installed, as program does, but for a part of a test.
func here(t *testing.T, name, pkg string) (ok bool) {
	t.Run(name, func(t *testing.T) {
		program(t, name, pkg)
		ok = true
	})
	return ok
}

// asUser is the header line of a client of the proxy's.
func (f *fronts) asUser() string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(f.user.name+":"+password)) + "\r\n"
}

// haproxy starts HAProxy with these sections.
func (f *fronts) haproxy(t *testing.T, name, sections string) {
	t.Helper()
	if !here(t, "haproxy", "haproxy") {
		return
	}
	dir, address := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", freePort(t))
	tokens, config := filepath.Join(dir, "token.map"), filepath.Join(dir, "haproxy.cfg")
	socket, global := f.socket, "global\n"
	if os.Geteuid() == 0 { // as Debian's; a socket is named as it is found below the chroot
		socket = strings.TrimPrefix(f.socket, f.Dir)
		global = "global\n\tchroot " + f.Dir + "\n\tuser nobody\n\tgroup " + site.NobodyGroup() + "\n"
	}
	sections = replaced(t, sections, `^\tuser alice password .*$`, "\tuser "+f.user.name+` insecure-password "`+password+`"`,
		` :443 ssl crt /etc/haproxy/site\.pem`, " "+address, `/etc/haproxy/sched-token\.map`, tokens, `/run/schedrestd/socket`, socket)
	f.renew(t, codeBlock(t, "PROXY.md", "/etc/cron.daily/sched-proxy-token"), "/etc/haproxy/sched-token.map", tokens)
	must(t, os.WriteFile(config, []byte(global+"defaults\n\ttimeout connect 10s\n\ttimeout client 50s\n\ttimeout server 50s\n\n"+sections), 0o600))
	f.proxy(t, name, address, program(t, "haproxy", "haproxy"), "-db", "-f", config)
}

// nginx starts nginx with these parts of its http section.
func (f *fronts) nginx(t *testing.T, name, parts string) {
	t.Helper()
	if !here(t, "nginx", "nginx-light") {
		return
	}
	dir, address := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", freePort(t))
	tokens, users, config := filepath.Join(dir, "token.conf"), filepath.Join(dir, "users"), filepath.Join(dir, "nginx.conf")
	parts = replaced(t, parts, `^\tlisten 443 ssl;$`, "\tlisten "+address+";", `^\tssl_certificate.*$`, "",
		`/etc/nginx/sched-users`, users, `/etc/nginx/sched-token\.conf`, tokens, `/run/schedrestd/socket`, f.socket)
	must(t, os.WriteFile(users, []byte(f.user.name+":{PLAIN}"+password+"\n"), 0o600))
	script, _, _ := strings.Cut(codeBlock(t, "PROXY.md", "/etc/cron.daily/sched-proxy-token"), "printf")
	f.renew(t, script+codeBlock(t, "PROXY.md", "/etc/cron.daily/sched-proxy-token, for nginx"), "/etc/nginx/sched-token.conf", tokens)
	// One process, so that nothing of it is left whatever becomes of the test.
	main := "master_process off;\npid " + dir + "/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		main += kind + "_temp_path " + dir + "/" + kind + ";\n"
	}
	must(t, os.WriteFile(config, []byte(main+parts+"}\n"), 0o600))
	f.proxy(t, name, address, program(t, "nginx", "nginx-light"), "-e", "stderr", "-c", config, "-g", "daemon off;")
}

// renew puts a token where a proxy finds it, by the script that the document has for that.
func (f *fronts) renew(t *testing.T, script, path, instead string) {
	t.Helper()
	must(t, f.shell(t, replaced(t, script, regexp.QuoteMeta(path), instead)))
	info, err := os.Stat(instead)
	if must(t, err); info.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %o", path, info.Mode().Perm())
	}
}

// shell runs a script of a document's, with schedctl at hand and no service to reload.
func (l *lab) shell(t *testing.T, script string, variables ...string) error {
	t.Helper()
	stubs := t.TempDir()
	must(t, os.WriteFile(filepath.Join(stubs, "systemctl"), []byte("#!/bin/sh\n"), 0o755))
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append([]string{"PATH=" + stubs + ":" + bin + ":/usr/bin:/bin", "SCHED_CONF=" + l.Conf()}, variables...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s\n%s", err, script, out)
	}
	return nil
}

// proxy starts a program that listens at address.
func (f *fronts) proxy(t *testing.T, name, address, path string, args ...string) {
	t.Helper()
	p := site.Part{Program: site.Program{Name: name, Path: path, Args: args, Log: f.Log(name)}, At: address, Answers: accepts(address)}
	d, err := site.Start(p)
	must(t, err)
	t.Cleanup(func() { d.Stop() })
	if err := d.Await(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(d.LastLines(20), "\n"))
	}
	f.ways = append(f.ways, front{name, address, f.asUser(), true})
}

// accepts is how it shows that somebody takes connections at address.
func accepts(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	}
}

// through sends a request by a way, with what makes it the user's, and says what came back.
func (f *fronts) through(t *testing.T, way front, method, path, body string) answer {
	t.Helper()
	answers := exchange(t, way.address, 2, fmt.Sprintf("%s /sched/%s/%s HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, version, path, way.adds, len(body), body))
	if len(answers) != 1 {
		t.Fatalf("%s: %d answers", way.name, len(answers))
	}
	return answers[0]
}

// exchange sends bytes as they are and reads answers, most at the most, until the other side ends the
// connection, or is done and waits for more.
func exchange(t *testing.T, address string, most int, text string) []answer {
	t.Helper()
	c, err := net.Dial("tcp", address)
	must(t, err)
	defer c.Close()
	_, _ = io.WriteString(c, text) // who refuses it may have hung up
	var answers []answer
	for r := bufio.NewReader(c); len(answers) < most; {
		limit := time.Minute
		if len(answers) > 0 {
			limit = time.Second // an answer that is missed here is found in the gateway's log
		}
		must(t, c.SetReadDeadline(time.Now().Add(limit)))
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return answers
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return answers
		}
		a := answer{status: resp.StatusCode, header: resp.Header, text: string(text)}
		_ = json.Unmarshal(text, &a.body)
		if answers = append(answers, a); resp.Close {
			break
		}
	}
	return answers
}

// countedAs is what became of a request: "as NAME", as whom it was answered, or the status of a refusal.
func (a answer) countedAs() string {
	if a.status == http.StatusOK {
		return fmt.Sprintf("as %v", a.get("meta", "client", "user"))
	}
	return fmt.Sprint(a.status)
}

// tokenBegins is how every token begins: {" in base64.
const tokenBegins = "eyJ"

// servedAs is everybody as whom the gateway has answered a request, by its log, once it has ended.
func (g *gate) servedAs() map[string]int {
	g.t.Helper()
	must(g.t, g.Stop())
	users := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)worker=\d+ .*msg=request .*\buser=("[^"]*"|\S*) .*\bstatus=2\d\d `).FindAllStringSubmatch(g.log(), -1) {
		users[strings.Trim(m[1], `"`)]++
	}
	return users
}

// TestProxy: behind proxies as docs/PROXY.md has them a user is himself: what he asks, what he submits, and
// what the logs say, which have the proxy's name as well. Who has no password is nobody.
func TestProxy(t *testing.T) {
	f := newFronts(t, "require_user_name")
	for _, way := range f.ways {
		t.Run(way.name, func(t *testing.T) {
			if got := f.through(t, way, "GET", "ping", "").countedAs(); got != "as "+f.user.name {
				t.Errorf("counted %s", got)
			}
			nobody := way
			if nobody.adds = ""; way.proxied {
				nobody.adds = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(f.user.name+":guess")) + "\r\n"
			}
			if got := f.through(t, nobody, "GET", "ping", "").countedAs(); got != "401" {
				t.Errorf("without a password counted %s", got)
			}
			needRoot(t)
			a := f.through(t, way, "POST", "job/submit", f.jobRequest("id -un; env", nil))
			if a.countedAs() != "as "+f.user.name {
				t.Fatalf("submitted: %s", a.text)
			}
			id := int(a.get("job_id").(float64))
			if a := f.end(id); a.get("jobs", 0, "user_name") != f.user.name {
				t.Errorf("the job is %v's", a.get("jobs", 0, "user_name"))
			}
			if got := f.output(t, id); !strings.HasPrefix(got, f.user.name+"\n") || strings.Contains(got, tokenBegins) {
				t.Errorf("the job printed:\n%s", got)
			}
			log, err := os.ReadFile(f.Log("schedctld"))
			must(t, err)
			if !regexp.MustCompile(fmt.Sprintf(`msg="job accepted" job=%d uid=%d (user=%s )?by=%s `, id, f.user.uid, f.user.name, f.holder)).Match(log) {
				t.Errorf("schedctld's log does not say whose job %d is and who brought it:\n%s", id, log)
			}
		})
	}
	both := f.user.name + " by " + f.holder
	if got := f.gate.servedAs(); got[both] < len(f.ways) || len(got) != 1 {
		t.Errorf("the gateway's log says it served %v, want %q alone", got, both)
	}
	if !strings.HasPrefix(f.userToken, tokenBegins) || strings.Contains(f.gate.log(), tokenBegins) {
		t.Error("the gateway's log has the token")
	}
}

// TestNameIsNeeded: require_user_name refuses a token that may act for all and comes without a name, and
// that is what helps against a proxy with which the client can have the name removed: what it lists in Connection goes
// after the proxy's own headers were added. The gateway does not see that Connection.
func TestNameIsNeeded(t *testing.T) {
	for name, served := range map[string]bool{"": true, "require_user_name": false} {
		t.Run("SCHEDRESTD_SECURITY="+name, func(t *testing.T) {
			f := newFronts(t, name)
			address := f.stripping(t)
			ask := func(more string) string {
				answers := exchange(t, address, 1, "GET /sched/"+version+"/ping HTTP/1.1\r\nHost: cluster\r\n"+more+"\r\n")
				if len(answers) != 1 {
					t.Fatalf("%d answers", len(answers))
				}
				return answers[0].countedAs()
			}
			if got := ask("Connection: close\r\n"); got != "as "+f.user.name {
				t.Errorf("an ordinary request counted %s", got)
			}
			want := "401"
			if served {
				want = "as " + f.holder // shows that the attack is one
			}
			if got := ask("Connection: close, X-SCHED-USER-NAME\r\n"); got != want {
				t.Errorf("with the name removed it counted %s, want %s", got, want)
			}
			f.withoutAuthentication(t, want)
			if got := f.gate.servedAs()[f.holder] > 0; got != served {
				t.Errorf("served as %s: %v", f.holder, got)
			}
		})
	}
}

// withoutAuthentication: nginx that asks nobody for a password sends no name, and so the request is whose the token is; or
// it sends the name that the client claims.
func (f *fronts) withoutAuthentication(t *testing.T, want string) {
	t.Helper()
	before := len(f.ways)
	f.nginx(t, "open nginx", replaced(t, codeBlock(t, "PROXY.md", "/etc/nginx/conf.d/sched.conf"), `auth_basic cluster;`, `auth_basic off;`))
	if len(f.ways) == before {
		return
	}
	open := f.ways[before]
	claimed := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(f.user.name+":guess")) + "\r\n"
	for adds, want := range map[string]string{"": want, claimed: "as " + f.user.name} {
		open.adds = adds
		if got := f.through(t, open, "GET", "ping", "").countedAs(); got != want {
			t.Errorf("nginx with auth_basic off: with %q it counted %s, want %s", adds, got, want)
		}
	}
}

// stripping is a proxy that adds headers before it strips what Connection lists, as Go's own does
// with a Director. It gives its address.
func (f *fronts) stripping(t *testing.T) string {
	t.Helper()
	to, err := url.Parse("http://" + f.ways[0].address)
	must(t, err)
	//lint:ignore SA1019 what it does wrong is what is to be shown
	proxy := &httputil.ReverseProxy{Director: func(r *http.Request) {
		r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
		r.Header.Set("X-SCHED-USER-TOKEN", f.userToken)
		r.Header.Set("X-SCHED-USER-NAME", f.user.name)
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := &http.Server{Handler: proxy}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return l.Addr().String()
}

// TestUnknownName: whether a user exists can't be told from the answer. It is that of any other bad
// credential, byte for byte but for the request's id.
func TestUnknownName(t *testing.T) {
	f := newFronts(t)
	ask := func(headers ...string) string {
		text := "GET /sched/" + version + "/node/" + f.Node + " HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
		answers := exchange(t, f.ways[0].address, 1, text)
		if len(answers) != 1 {
			t.Fatalf("%d answers", len(answers))
		}
		a := answers[0]
		for _, own := range []string{"X-Request-Id", "Date"} {
			a.header.Del(own)
		}
		var out bytes.Buffer
		fmt.Fprintln(&out, a.status)
		_ = a.header.Write(&out)
		return out.String() + regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(a.text, "CLIENT")
	}
	token, name := "X-SCHED-USER-TOKEN: "+f.userToken, "X-SCHED-USER-NAME: "
	head, _, _ := strings.Cut(f.userToken, ".")
	want := ask("X-SCHED-USER-TOKEN: " + head + ".e30." + strings.Repeat("A", 43))
	if !strings.HasPrefix(want, "401\n") {
		t.Fatalf("a forged token: %s", want)
	}
	for _, headers := range [][]string{
		{token, name + "nobody-has-this-name"},
		{token, name + "4294967295"},
		{token, name + "nobody-has-this-name", name + f.user.name},
		{token, name + "nobody has this name"},
		{},
	} {
		if diff := cmp.Diff(want, ask(headers...)); diff != "" {
			t.Errorf("%q: (-forged +got):\n%s", headers[max(0, len(headers)-1):], diff)
		}
	}
	if got := ask(token, name+f.user.name); !strings.HasPrefix(got, "200\n") {
		t.Errorf("a user who exists: %s", got)
	}
}
