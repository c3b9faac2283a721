package bench

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"schedrestd/bundled/demo/site"
)

// daemonTLS is a table that compares gateways whose controllers use TLS with one
// whose controller does not.
var daemonTLS = &comparison{title: "TLSType=tls/s2n, median of paired rounds", columns: []string{"TLS", "plain"}}

func init() { tables = append(tables, daemonTLS) }

// BenchmarkDaemonTLS measures what TLS between the gateway and the controller
// costs the gateway. Each request is a connection with a handshake. Slurm's
// controllers offer no sessions, so each handshake is a whole one. For
// comparison, sessions of the bundled controller are resumed.
func BenchmarkDaemonTLS(b *testing.B) {
	l := theLab.open(b)
	dir := filepath.Join(l.Dir, "tls")
	must(b, os.Mkdir(dir, 0o755))
	must(b, site.WriteCertificates(dir, l.Node))
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ctld_cert.pem"), filepath.Join(dir, "ctld_cert_key.pem"))
	must(b, err)
	start := func(name string, jobs int, config *tls.Config) server {
		lines, wrap := "", func(nc net.Conn) net.Conn { return nc }
		if config != nil {
			lines = "TLSType=tls/s2n\nTLSParameters=ca_cert_file=" + filepath.Join(dir, "ca_cert.pem") + "\n"
			wrap = func(nc net.Conn) net.Conn { return tls.Server(nc, config) }
		}
		port := startListControllerOver(b, 10, jobs, wrap)
		return l.startWithLines(b, port, fmt.Sprintf("%s-%d", name, jobs), lines, "-a", "rest_auth/jwt")
	}
	whole := &tls.Config{Certificates: []tls.Certificate{pair}, SessionTicketsDisabled: true}
	resumed := &tls.Config{Certificates: []tls.Certificate{pair}}
	small := load{request: get("/sched/v0.0.43/ping"), keepAlive: true, singleClient: true, count: 400}
	b.Run("ping", func(b *testing.B) {
		compare(b, daemonTLS, "ping, one client, a whole handshake each", []server{start("whole", 1, whole), start("plain", 1, nil)}, small)
	})
	b.Run("ping-resumed", func(b *testing.B) {
		compare(b, daemonTLS, "ping, one client, resumed sessions", []server{start("resumed", 1, resumed), start("plain2", 1, nil)}, small)
	})
	b.Run("list", func(b *testing.B) {
		list := load{request: get("/sched/v0.0.43/jobs"), keepAlive: true, singleClient: true, count: 4}
		compare(b, daemonTLS, "list of 20,000 jobs, one client", []server{start("list", manyJobs, whole), start("plain3", manyJobs, nil)}, list)
	})
}
