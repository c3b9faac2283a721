package gateway

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/bundled/demo/site"
	"schedrestd/integration/harness"
)

// TestConfiglessTLS checks a gateway that fetches its configuration with TLS, and
// that it does not fetch without a certificate of the right CA.
func TestConfiglessTLS(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, withDaemonTLS, func(l *harness.Lab) { l.Extra = "SchedctldParameters=enable_configless\n" })
	token, authorities := filepath.Join(l.Dir, "etc", "conf.jwt"), filepath.Join(l.Dir, "etc", "ca_cert.pem")
	harness.Must(t, os.WriteFile(token, []byte("SCHED_JWT="+l.OwnToken+"\n"), 0o600))
	tcp := fmt.Sprintf("127.0.0.1:%d", l.Controller)
	start := func(address string, env ...string) (site.Part, []string) {
		p := l.Restd
		p.Args = append(append([]string{}, l.Restd.Args[2:len(l.Restd.Args)-1]...), "-v", "--conf-server", tcp, address) // without -f
		return p, append(env, "SCHEDRESTD_CONF_TOKEN="+token)
	}
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	p, env := start(address, "SCHEDRESTD_CONF_CA="+authorities)
	g := l.StartGatewayPart(t, p, env)
	g.CheckServes(address)
	other := filepath.Join(l.Dir, "etc", "other.pem")
	harness.Must(t, os.WriteFile(other, []byte("no certificate\n"), 0o644))
	for _, tt := range []struct{ name, authorities, want string }{
		{"without a CA", "", "SCHEDRESTD_CONF_CA"},
		{"not a certificate", other, other},
		{"no file", "/nowhere/ca.pem", "/nowhere/ca.pem"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, env := start(fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), "SCHEDRESTD_CONF_CA="+tt.authorities)
			if log := l.FailsToStart(t, nil, append(p.Env, env...), p.Args...); !strings.Contains(log, tt.want) {
				t.Errorf("log:\n%s", log)
			}
		})
	}
}

// TestConfigless checks a gateway without a configuration file, which gets its
// configuration from the bundled controller: over the controller's UNIX socket,
// where the kernel identifies schedrestd-config, and over TCP with a token.
func TestConfigless(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, func(l *harness.Lab) {
		l.Extra = "SchedctldParameters=enable_configless\nInclude more.conf\n"
		harness.Must(t, os.WriteFile(filepath.Join(filepath.Dir(l.Conf()), "more.conf"), []byte("MessageTimeout=20\n"), 0o644))
	})
	token := filepath.Join(l.Dir, "etc", "conf.jwt")
	harness.Must(t, os.WriteFile(token, []byte("SCHED_JWT="+l.OwnToken+"\n"), 0o600))
	tcp := fmt.Sprintf("127.0.0.1:%d", l.Controller)
	t.Run("schedctl", func(t *testing.T) {
		cmd := exec.Command(filepath.Join(harness.Bin, "schedctl"), "ping")
		cmd.Env = []string{"SLURM_CONF_SERVER=" + tcp, "SLURM_JWT=" + l.OwnToken}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), " primary UP ") {
			t.Errorf("%v: %s", err, out)
		}
	})
	for _, tt := range []struct {
		name, servers, from string
		env                 []string
	}{
		{"socket", "127.0.0.1:1,unix:" + l.Socket(), "unix:" + l.Socket(), nil},
		{"token", tcp, tcp, []string{"SCHEDRESTD_CONF_TOKEN=" + token}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := l.Restd
			address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
			p.Args = append(append([]string{}, l.Restd.Args[2:len(l.Restd.Args)-1]...), "-v", "--conf-server", tt.servers, address) // without -f
			g := l.StartGatewayPart(t, p, tt.env)
			g.CheckServes(address)
			if log := g.Logged(); !strings.Contains(log, "path="+tt.from+"/slurm.conf") {
				t.Errorf("log:\n%s", log)
			}
			harness.Must(t, syscall.Kill(g.PID(), syscall.SIGHUP))
			g.Eventually(t, "the configuration is fetched again", func() bool { return strings.Contains(g.Logged(), "configuration reloaded") })
			g.CheckServes(address)
		})
	}
}

// TestConfiglessProcess checks the process that speaks with the controller, while
// the controller has not answered: it has the filter and no privileges, and no
// descriptors but the standard ones, its channel and the connection.
func TestConfiglessProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token := filepath.Join(dir, "conf.jwt")
	harness.Must(t, os.WriteFile(token, []byte("a.b.c\n"), 0o600))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	defer ln.Close()
	answer := make(chan struct{})
	asked := make(chan struct{}, 100)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Read(make([]byte, 1<<10))
				asked <- struct{}{}
				<-answer
				c.Write([]byte("\x00\x00\x00\x04\x1b[2J"))
			}()
		}
	}()
	cmd := exec.Command(filepath.Join(harness.Bin, "schedrestd"), "--check", "--conf-server", ln.Addr().String(), "127.0.0.1:0")
	cmd.Env = []string{"SCHEDRESTD_CONF_TOKEN=" + token}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	harness.Must(t, cmd.Start())
	select {
	case <-asked:
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("the controller was not asked:\n%s", &out)
	}
	pid := harness.DescendantNamed(t, cmd.Process.Pid, "schedrestd-fetc")
	status := harness.StatusOf(t, pid)
	for name, want := range map[string]string{"Seccomp": "2", "NoNewPrivs": "1", "CapPrm": "0000000000000000", "CapEff": "0000000000000000"} {
		if status[name] != want {
			t.Errorf("%s is %s", name, status[name])
		}
	}
	if os.Geteuid() == 0 {
		if strings.HasPrefix(status["Uid"], "0\t") {
			t.Errorf("Uid is %s", status["Uid"])
		}
		list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		harness.Must(t, err)
		kinds := map[string]int{}
		for _, fd := range list {
			to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
			kind, _, _ := strings.Cut(to, ":[")
			kinds[kind]++
		}
		want := map[string]int{"pipe": 2, "socket": 2, "anon_inode": 2} // the runtime's poller
		if diff := cmp.Diff(want, kinds); diff != "" {
			t.Errorf("descriptors (-want +got):\n%s", diff)
		}
	}
	close(answer)
	if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "error: fetch the configuration from "+ln.Addr().String()) || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v:\n%s", err, &out)
	}
}
