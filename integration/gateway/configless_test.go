package gateway

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/integration/harness"
)

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
			harness.Eventually(t, "the configuration is fetched again", func() bool { return strings.Contains(g.Logged(), "configuration reloaded") })
			g.CheckServes(address)
		})
	}
}
