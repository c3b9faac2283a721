package proxy

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/integration/harness"
)

// TestNoPasswordBehindProxy checks which headers about the user reach the gateway
// through the example configurations that check passwords: only those of the proxy.
// With the header Authorization, each worker would see the users' passwords.
func TestNoPasswordBehindProxy(t *testing.T) {
	t.Parallel()
	lab := harness.NewProxyLab(t)
	f := *lab
	f.Socket, f.Frontends = filepath.Join(harness.SocketDir(t, f.Lab), "recorder"), nil
	received := make(chan http.Header, 1)
	l, err := net.Listen("unix", f.Socket)
	harness.Must(t, err)
	harness.Must(t, os.Chmod(f.Socket, 0o666)) // HAProxy has another user
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/readyz") {
			received <- r.Header
		}
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	f.StartHAProxy(t, "haproxy before a recorder", harness.HAProxyExample(t))
	f.StartNginx(t, "nginx before a recorder", harness.NginxExample(t))
	for _, frontend := range f.Frontends {
		frontend.Headers += "X-Slurm-User-Name: bob\r\nX-Slurm-User-Token: x.y.z\r\nX-Sched-User-Name: bob\r\nX-Sched-User-Token: x.y.z\r\n"
		for _, r := range []struct{ method, path string }{{"GET", "ping"}, {"POST", "job/submit"}} {
			if a := sendThrough(&f, t, frontend, r.method, r.path, ""); a.Status != http.StatusOK {
				t.Fatalf("%s: %d: %s", frontend.Name, a.Status, a.Text)
			}
			got := <-received
			user := map[string][]string{}
			for name, values := range got {
				if strings.Contains(name, "Auth") || strings.Contains(name, "User") && name != "User-Agent" {
					user[name] = values
				}
			}
			if token := user["X-Sched-User-Token"]; len(token) != 1 || !strings.HasPrefix(token[0], tokenBegins) {
				t.Errorf("%s: tokens %q", frontend.Name, token)
			}
			delete(user, "X-Sched-User-Token")
			if diff := cmp.Diff(map[string][]string{"X-Sched-User-Name": {f.User.Name}}, user); diff != "" {
				t.Errorf("%s, %s: (-want +got):\n%s", frontend.Name, r.method, diff)
			}
		}
	}
}
