package proxy

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"schedrestd/integration/harness"
)

// balancers are the configurations in docs/LOGS.md, each with the command that
// starts its load balancer.
var balancers = []struct {
	name, pkg, document string
	start               func(dir, sections string) (config string, args []string)
}{
	{"haproxy", "haproxy", "/etc/haproxy/haproxy.cfg, two gateways", func(dir, sections string) (string, []string) {
		return harness.HAProxyDefaults + sections, []string{"-db", "-f"}
	}},
	{"nginx", "nginx-light", "/etc/nginx/conf.d/gateways.conf", func(dir, sections string) (string, []string) {
		return harness.NginxConfig(dir, sections), []string{"-e", "stderr", "-g", "daemon off;", "-c"}
	}},
}

// TestDrainingGateway checks a load balancer that is configured as in
// docs/LOGS.md. When one gateway is stopped, the load balancer must send
// requests to the other gateway, and no request may fail.
func TestDrainingGateway(t *testing.T) {
	t.Parallel()
	for _, b := range balancers {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			program := harness.FindProgram(t, b.name, b.pkg)
			l := harness.NewDaemons(t)
			address := func() string { return fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)) }
			frontend, first, second := address(), address(), address()
			env := []string{"SCHEDRESTD_TRUSTED_PROXIES=127.0.0.1"}
			gateway1, gateway2 := l.StartGateway(t, env, first), l.StartGateway(t, env, second)
			sections := harness.Substitute(t, harness.CodeBlock(t, "LOGS.md", b.document),
				`^\tbind :6820$`+"|"+`^\tlisten 6820;$`, map[string]string{"haproxy": "\tbind " + frontend, "nginx": "\tlisten " + frontend + ";"}[b.name],
				regexp.QuoteMeta("192.0.2.11:6820"), first, regexp.QuoteMeta("192.0.2.12:6820"), second)
			dir := t.TempDir()
			config := filepath.Join(dir, "config")
			text, args := b.start(dir, sections)
			harness.Must(t, os.WriteFile(config, []byte(text), 0o600))
			l.StartProgram(t, b.name, frontend, program, append(args, config)...)
			send := func() string {
				req, err := http.NewRequest("GET", "http://"+frontend+"/sched/"+harness.Version+"/ping", nil)
				harness.Must(t, err)
				req.Header.Set("X-SCHED-USER-TOKEN", l.OwnToken)
				req.Header.Set("X-Request-Id", "of-the-client")
				resp, err := http.DefaultClient.Do(req)
				harness.Must(t, err)
				defer resp.Body.Close()
				body, _ := io.ReadAll(resp.Body)
				id := resp.Header.Get("X-Request-Id")
				if resp.StatusCode != http.StatusOK || id == "" || id == "of-the-client" {
					t.Fatalf("status %d, id %q: %s", resp.StatusCode, id, body)
				}
				return id
			}
			servedBy := func(id string) (gateway *harness.Gateway) { // the log may be written after the answer
				line := regexp.MustCompile(`msg=request id=` + id + ` .* id_from=proxy`)
				harness.Eventually(t, "a gateway logs the request", func() bool {
					for _, gateway = range []*harness.Gateway{gateway1, gateway2} {
						if line.MatchString(gateway.Logged()) {
							return true
						}
					}
					return false
				})
				return gateway
			}
			harness.Eventually(t, "both gateways serve", func() bool {
				gateway := servedBy(send())
				return gateway != servedBy(send())
			})
			harness.Must(t, gateway1.Stop())
			for range 20 {
				if servedBy(send()) != gateway2 {
					t.Error("the gateway that was stopped served a request")
				}
			}
		})
	}
}
