package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"schedrestd/bundled/demo/site"
	"schedrestd/integration/harness"
)

// TestNothingIsSentTwice checks that the example for HAProxy sends a request that
// changes something only once if the gateway closes the connection without an
// answer, in whatever way the client writes its path. It sends others again.
func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	program := harness.FindProgram(t, "haproxy", "haproxy")
	gateway, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	defer gateway.Close()
	var requests atomic.Int32
	go func() {
		for {
			c, err := gateway.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				requests.Add(1)
			}
			c.Close()
		}
	}()
	address, dir := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), t.TempDir()
	text := harness.Substitute(t, harness.Example(t, "haproxy.cfg"), `^\tserver two .*$`, "", `^\tserver one .*$`, "\tserver one "+gateway.Addr().String(),
		`^\thttp-check .*$`, "", `^\toption httpchk .*$`, "", ` :8443 ssl crt /etc/haproxy/site\.pem.*$`, " "+address)
	text = regexp.MustCompile(`(?ms)^(# [^\n]*\n)*frontend passwords\n.*?\n\n`).ReplaceAllLiteralString(text, "")
	config := filepath.Join(dir, "haproxy.cfg")
	harness.Must(t, os.Mkdir(filepath.Join(dir, "log"), 0o700))
	harness.Must(t, os.WriteFile(config, []byte(text), 0o600))
	(&harness.Lab{Site: &site.Site{Dir: dir}}).StartProgram(t, "haproxy", address, program, "-db", "-f", config)
	for request, again := range map[string]bool{
		"GET job/5":               true,
		"GET jobs?name=/requeue":  true,
		"GET job/5/requeue":       false,
		"GET job/5/requeue?x":     false,
		"GET job/5/requeu%65":     false,
		"GET job/5//%72equeue//":  false,
		"GET job/5/requeue/%2e/.": false,
		"GET reconfigure/":        false,
		"POST job/submit":         false,
		"DELETE job/5":            false,
	} {
		requests.Store(0)
		method, path, _ := strings.Cut(request, " ")
		harness.Exchange(t, address, 1, method+" /sched/"+requeueVersion+"/"+path+" HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		if n := requests.Load(); n == 0 || n > 1 != again {
			t.Errorf("%s: sent %d times", request, n)
		}
	}
}
