package plan

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/confserver/confservertest"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
	"schedrestd/rpc/tlsconn/tlstest"
	"schedrestd/security/sandbox/sandboxtest"
)

// A confController is a controller that sends its configuration.
type confController struct {
	address string
	files   atomic.Pointer[[]model.ConfigFile]
	asked   atomic.Int32
	stop    func()
}

func newConfController(t *testing.T, files ...model.ConfigFile) *confController {
	t.Helper()
	ln := confservertest.Listen(t, "unix")
	c := &confController{address: confservertest.Address(ln)}
	c.files.Store(&files)
	c.stop = confservertest.Serve(t, ln, 0, func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		c.asked.Add(1)
		return confservertest.Send(*c.files.Load()...)(ctx, r)
	})
	return c
}

func (c *confController) send(name, text string) {
	c.files.Store(&[]model.ConfigFile{{Name: name, Text: text, Exists: true}})
}

// start runs the command and returns the Plan, or nil, and the log.
func start(isReload bool, args ...string) (*fakeHost, string) {
	host, setup := new(fakeHost), startHere()
	setup.Reload = isReload
	var out, errOut bytes.Buffer
	runCommand(host, setup, args, &out, &errOut)
	if host.failure != nil {
		errOut.WriteString("error: " + host.failure.Error())
	}
	return host, out.String() + errOut.String()
}

// TestConfigless checks a gateway that gets its configuration from a controller:
// at the start, at a reload, and from the copy while the controller is down.
func TestConfigless(t *testing.T) {
	sandboxtest.Need(t)
	writeConfig(t, "")
	t.Setenv("SCHED_JWT", "daemon")
	cache := t.TempDir()
	t.Setenv("SCHEDRESTD_CONF_CACHE", cache)
	if err := os.Chmod(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	const main = "Include nodes.conf\nClusterName=sent\nSlurmctldHost=one(127.0.0.1)\nAuthAltTypes=auth/jwt\n"
	ctl := newConfController(t, model.ConfigFile{Name: "slurm.conf", Text: main, Exists: true},
		model.ConfigFile{Name: "nodes.conf", Text: "NodeName=n\nNodeNam=m\n", Exists: true}, model.ConfigFile{Name: "gres.conf"})
	args := []string{"--conf-server", ctl.address, "127.0.0.1:0"}
	want := func(host *fakeHost, log, cluster string, texts ...string) {
		t.Helper()
		if cluster == "" && host.plan != nil || cluster != "" && (host.plan == nil || host.plan.Setup.Cluster != cluster) {
			t.Errorf("plan %+v, want cluster %q\n%s", host.plan, cluster, log)
		}
		for _, text := range texts {
			if !strings.Contains(log, text) {
				t.Errorf("want %q in:\n%s", text, log)
			}
		}
	}

	host, log := start(false, args...)
	want(host, log, "sent", "configuration fetched\" from="+ctl.address, ctl.address+"/nodes.conf:2: NodeNam: unknown key")
	if host.plan != nil && host.plan.Path != ctl.address+"/slurm.conf" {
		t.Errorf("path %s", host.plan.Path)
	}
	host, log = start(false, append([]string{"--check"}, args...)...)
	want(host, log, "sent", ctl.address+"/slurm.conf, "+ctl.address+"/nodes.conf", "in "+cache+", ")

	// A configuration that can't be used is refused, and the copy is kept.
	ctl.send("slurm.conf", "ClusterName=broken\nSlurmctldHost=one(127.0.0.1)\nSlurmctldPort=x\n")
	host, log = start(true, args...)
	want(host, log, "", ctl.address+"/slurm.conf:3: SlurmctldPort: ")
	host, log = start(false, args...)
	want(host, log, "", ctl.address+"/slurm.conf:3: SlurmctldPort: ")
	ctl.send("slurm.conf", "Include other.conf\n"+main)
	host, log = start(false, args...)
	want(host, log, "", ctl.address+"/slurm.conf:1: ", "other.conf: the controller did not send this file")
	ctl.send("slurm.conf", "Include ../../etc/passwd\n"+main)
	host, log = start(false, args...)
	want(host, log, "", "the controller did not send this file")

	// While the controller is down, only a start uses the copy.
	ctl.stop()
	host, log = start(false, args...)
	want(host, log, "sent", "level=WARN msg=\"no controller sends the configuration; using the copy of an earlier start\" from="+ctl.address+" age=",
		"copy of "+ctl.address+"/nodes.conf:2: NodeNam: unknown key")
	host, log = start(false, append([]string{"--check"}, args...)...)
	want(host, log, "sent", "copy of "+ctl.address+"/slurm.conf")
	host, log = start(true, args...)
	want(host, log, "", "fetch the configuration from "+ctl.address, "can't be reached")
	host, log = start(false, "--conf-server", ctl.address+",localhost:1", "127.0.0.1:0")
	want(host, log, "", "fetch the configuration from "+ctl.address+",localhost:1")

	// An administrator who wants proof of the sender does not want a copy that
	// was fetched without it.
	t.Setenv("SCHEDRESTD_CONF_CA", filepath.Join(t.TempDir(), "ca.pem"))
	if err := os.WriteFile(os.Getenv("SCHEDRESTD_CONF_CA"), tlstest.NewCA(t).PEM(), 0o644); err != nil {
		t.Fatal(err)
	}
	host, log = start(false, args...)
	want(host, log, "", "copy of the configuration not usable", "was fetched with another CA, or without TLS", "fetch the configuration from ")
	os.Unsetenv("SCHEDRESTD_CONF_CA")

	if err := os.Chmod(cache, 0o777); err != nil {
		t.Fatal(err)
	}
	host, log = start(false, args...)
	want(host, log, "", "copy of the configuration not usable", "others can write", "fetch the configuration from ")
}

// TestConfiglessInetd checks that in inetd mode not every client causes a
// request to the controller.
func TestConfiglessInetd(t *testing.T) {
	sandboxtest.Need(t)
	writeConfig(t, "")
	t.Setenv("SCHED_JWT", "daemon")
	ctl := newConfController(t)
	ctl.send("slurm.conf", "ClusterName=sent\nSlurmctldHost=one(127.0.0.1)\nAuthAltTypes=auth/jwt\n")
	t.Setenv("SLURM_CONF_SERVER", ctl.address)
	clients := func(n int) {
		t.Helper()
		for range n {
			if host, log := start(false, "-f", ""); host.plan != nil {
				t.Errorf("an empty -f: %s", log)
			}
			host, log := start(false)
			if host.plan == nil || host.plan.Setup.Cluster != "sent" {
				t.Fatalf("plan %+v\n%s", host.plan, log)
			}
		}
	}
	t.Setenv("SCHEDRESTD_CONF_CACHE", "/nowhere/cache")
	clients(2)
	if n := ctl.asked.Load(); n != 2 {
		t.Errorf("without a cache: %d requests", n)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SCHEDRESTD_CONF_CACHE", dir)
	clients(3)
	if n := ctl.asked.Load(); n != 3 {
		t.Errorf("with a cache: %d requests more", n-2)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if hence := time.Now().Add(time.Hour); len(files) != 1 || os.Chtimes(files[0], hence, hence) != nil {
		t.Fatalf("files %q", files)
	}
	clients(1)
	if n := ctl.asked.Load(); n != 4 {
		t.Errorf("after the clock was set back: %d requests more", n-3)
	}
}

// TestConfigurationOrigin checks whether the configuration comes from a file or
// from a controller.
func TestConfigurationOrigin(t *testing.T) {
	path := writeConfig(t, sample)
	defer func(paths []string) { defaultPaths(paths) }(defaultPaths([]string{path + "-none"}))
	for _, tt := range []struct {
		name, env, args, usual string // usual: the file at a usual place
		want                   string // "" for an error
	}{
		{name: "option", args: "--conf-server a", want: "a:6817"},
		{name: "option and a usual file", args: "--conf-server a", usual: path, want: "a:6817"},
		{name: "option and SLURM_CONF", args: "--conf-server a", env: "SLURM_CONF=" + path, want: "a:6817"},
		{name: "option and variable", args: "--conf-server a", env: "SLURM_CONF_SERVER=b", want: "a:6817"},
		{name: "option and -f", args: "--conf-server a -f " + path},
		{name: "variable", env: "SCHED_CONF_SERVER=b:1,c", want: "b:1,c:6817"},
		{name: "variable and a usual file", env: "SLURM_CONF_SERVER=b", usual: path, want: path},
		{name: "variable and -f", env: "SLURM_CONF_SERVER=b", args: "-f " + path, want: path},
		{name: "in another namespace", env: "SCHEDRESTD_CONTROLLER_NETNS=mgmt", args: "--conf-server a"},
		{name: "neither"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			writeConfig(t, "")
			if name, value, ok := strings.Cut(tt.env, "="); ok {
				t.Setenv(name, value)
			}
			if tt.usual != "" {
				defer func(paths []string) { defaultPaths(paths) }(defaultPaths([]string{tt.usual}))
			}
			o := parseOptions(t, strings.Fields(tt.args)...)
			from, err := o.findConfiguration()
			got := from.path
			if from.servers != nil {
				got = from.servers.String()
			}
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestConfToken checks the file with the token for the controller.
func TestConfToken(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		want, err  string
	}{
		{"token", "a.b.c\n", 0o600, "a.b.c", ""},
		{"output of scontrol", "SLURM_JWT=a.b.c\n", 0o440, "a.b.c", ""},
		{"empty", "\n", 0o600, "", "no token"},
		{"two", "a.b.c\na.b.c\n", 0o600, "", "no token"},
		{"readable", "a.b.c", 0o644, "", "others can read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := optionsHere()
			o.ConfToken = filepath.Join(t.TempDir(), "token")
			err := os.WriteFile(o.ConfToken, []byte(tt.text), 0o600)
			if err == nil {
				err = os.Chmod(o.ConfToken, tt.mode) // whatever the umask is
			}
			if err != nil {
				t.Fatal(err)
			}
			token, err := o.confToken()
			if token != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q, %v", token, err)
			}
		})
	}
}

// TestConfTokenExpires checks what is said about a token for the controller that
// expires soon, or has expired, and about a missing one.
func TestConfTokenExpires(t *testing.T) {
	sandboxtest.Need(t)
	writeConfig(t, "")
	path := filepath.Join(t.TempDir(), "conf.jwt")
	t.Setenv("SCHEDRESTD_CONF_TOKEN", path)
	ctl := newConfController(t) // accepts none of these tokens
	const warning, expired = "token for the configuration expires soon", "; the token in "
	for _, tt := range []struct {
		name      string
		left      time.Duration // 0: there is no file
		want, not string
	}{
		{"years", 9000 * time.Hour, "does not accept the credential", warning},
		{"half an hour", 30 * time.Minute, warning, expired},
		{"expired", -time.Hour, expired + path + " expired 1h0m", warning},
		{"missing", 0, "SCHEDRESTD_CONF_TOKEN", expired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			claims := fmt.Sprintf(`{"exp":%d}`, time.Now().Add(tt.left).Unix())
			err := os.WriteFile(path, []byte("SLURM_JWT=a."+base64.RawURLEncoding.EncodeToString([]byte(claims))+".c\n"), 0o600)
			if tt.left == 0 {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, log := start(false, "--conf-server", ctl.address, "127.0.0.1:0"); !strings.Contains(log, tt.want) || strings.Contains(log, tt.not) {
				t.Errorf("want %q and not %q:\n%s", tt.want, tt.not, log)
			}
		})
	}
}
