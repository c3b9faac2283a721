package admission

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"schedrestd/integration/harness"
)

// connect connects two namespaces as if they were two machines: n gets the
// address 192.0.2.1, and peer gets 192.0.2.2.
func (n network) connect(t *testing.T, peer network) {
	t.Helper()
	ip := func(line string) {
		t.Helper()
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("ip %s: %v: %s", line, err, out)
		}
	}
	ip("-n " + n.name + " link add veth0 type veth peer name veth0 netns " + peer.name)
	for i, name := range []string{n.name, peer.name} {
		ip(fmt.Sprintf("-n %s address add 192.0.2.%d/24 dev veth0", name, i+1))
		ip("-n " + name + " link set veth0 up")
	}
}

// TestPreparedSockets checks that a busy client's worker connects to a
// controller on another machine through sockets that the dispatcher has
// prepared.
func TestPreparedSockets(t *testing.T) {
	t.Parallel()
	l, local, remote := harness.NewLab(t), newNetwork(t, "here"), newNetwork(t, "there")
	local.connect(t, remote)
	harness.ForwardFrom(t, remote.handle, fmt.Sprintf("192.0.2.2:%d", l.Controller), harness.DialFunc("tcp", fmt.Sprintf("127.0.0.1:%d", l.Controller)))
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	conf := filepath.Join(l.Dir, "etc", "remote.conf")
	harness.Must(t, os.WriteFile(conf, []byte(strings.Replace(string(text), "(127.0.0.1)", "(192.0.2.2)", 1)), 0o600))
	a := &limitedGateway{address: fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))}
	args := append([]string{}, l.Restd.Args[:len(l.Restd.Args)-1]...)
	for i, arg := range args {
		if arg == l.Conf() {
			args[i] = conf
		}
	}
	restd := l.Restd
	restd.Args = append(args, a.address)
	a.Gateway = l.StartGatewayPart(t, restd, []string{"SCHEDRESTD_CONTROLLER_NETNS=" + local.name})
	client := newSource(t, ownUID, false)
	client.Transport.(*http.Transport).MaxConnsPerHost = 0
	pattern := regexp.MustCompile(`dials\.opened=(\d+).* dials\.prepared=(\d+)`)
	harness.Eventually(t, "spares are used", func() bool {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					if status, _ := a.ping(client); status != http.StatusOK {
						t.Errorf("answered %d", status)
					}
				}
			})
		}
		wg.Wait()
		harness.Must(t, syscall.Kill(a.PID(), syscall.SIGUSR1))
		var matches [][]string
		harness.Eventually(t, "the counters are in the log", func() bool {
			matches = pattern.FindAllStringSubmatch(a.Logged(), -1)
			return len(matches) > 0
		})
		last := matches[len(matches)-1]
		spares, _ := strconv.Atoi(last[2])
		return spares > 0
	})
}
