package harness

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"schedrestd/bundled/demo/site"
	"sync"
	"sync/atomic"
	"testing"
)

// countingProxy forwards connections to a daemon. It counts only connections on
// which the client sends something, because a gateway opens some connections in
// advance and may never use them.
type countingProxy struct {
	port int
	used atomic.Int64
}

// newCountingProxy starts a proxy that forwards connections to daemonPort on
// the loopback interface. The proxy runs until the test ends.
func newCountingProxy(t *testing.T, daemonPort int) *countingProxy {
	t.Helper()
	s := &countingProxy{}
	s.port = serveConns(t, func(in net.Conn) {
		out, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", daemonPort))
		if err != nil {
			return // the daemon is down, so the client's connection ends
		}
		defer out.Close()
		var wg sync.WaitGroup
		wg.Go(func() {
			first := make([]byte, 1)
			if n, _ := in.Read(first); n > 0 {
				s.used.Add(1)
				out.Write(first)
				io.Copy(out, in)
			}
			out.(*net.TCPConn).CloseWrite()
		})
		io.Copy(in, out)
		in.Close() // ends the copy in the other direction
		wg.Wait()
	})
	return s
}

// ConnsDuring returns how many connections to the daemon were used for the
// first time while f ran.
func (s *countingProxy) ConnsDuring(f func()) int64 {
	before := s.used.Load()
	f()
	return s.used.Load() - before
}

// CountedGateway is a gateway that reaches both daemons only through counting
// proxies.
type CountedGateway struct {
	*Gateway
	Address  string
	Ctl, Dbd *countingProxy
}

// StartCounted starts a gateway that has no key for verifying tokens. It adds
// args to the gateway's arguments.
func (l *Lab) StartCounted(t *testing.T, args ...string) *CountedGateway {
	t.Helper()
	return l.StartCountedWith(t, "jwt_key="+filepath.Join(l.Dir, "etc", "there-is-none"), args...)
}

// StartCountedWith starts a gateway with the given value of AuthAltParameters.
// It adds args to the gateway's arguments.
func (l *Lab) StartCountedWith(t *testing.T, parameters string, args ...string) *CountedGateway {
	t.Helper()
	k := &CountedGateway{
		Address: fmt.Sprintf("127.0.0.1:%d", FreePort(t)),
		Ctl:     newCountingProxy(t, l.Controller), Dbd: newCountingProxy(t, l.Accounting),
	}
	k.Gateway = l.startBehind(t, "counted.conf", k.Address, k.Ctl.port, k.Dbd.port, parameters, args...)
	return k
}

// startBehind starts a gateway at address that reaches the daemons only through
// the given ports, and has the given value of AuthAltParameters. Its
// configuration is the file name. It adds args to the gateway's arguments.
func (l *Lab) startBehind(t *testing.T, name, address string, controller, accounting int, parameters string, args ...string) *Gateway {
	t.Helper()
	text, err := os.ReadFile(l.Conf())
	Must(t, err)
	for key, value := range map[string]string{
		"SchedctldPort":         fmt.Sprint(controller),
		"AccountingStoragePort": fmt.Sprint(accounting),
		"AuthAltParameters":     parameters,
		"AuthInfo":              "socket=" + filepath.Join(l.Dir, "etc", "there-is-none.sock"),
	} {
		line := regexp.MustCompile("(?m)^" + key + "=.*$")
		if !line.Match(text) {
			t.Fatalf("the configuration has no %s:\n%s", key, text)
		}
		text = line.ReplaceAll(text, []byte(key+`="`+value+`"`))
	}
	text = regexp.MustCompile("(?m)^AccountingStorageSocket=.*\n").ReplaceAll(text, nil)
	conf := filepath.Join(l.Dir, "etc", name)
	Must(t, site.WritePrivate(conf, string(text)))
	p := l.Restd
	p.Args = nil
	for _, a := range l.Restd.Args[:len(l.Restd.Args)-1] {
		if a == l.Conf() {
			a = conf
		}
		p.Args = append(p.Args, a)
	}
	p.Args = append(append(p.Args, args...), address)
	return l.StartGatewayPart(t, p, nil)
}

// Client returns a client that uses a single connection. So one worker serves
// all its requests.
func (k *CountedGateway) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
}

// Request sends a request to the gateway k.
func (k *CountedGateway) Request(c *http.Client, method, path, body string, headers ...string) Answer {
	k.T.Helper()
	l := &Lab{Site: k.Lab.Site, T: k.T, URL: "http://" + k.Address, OwnToken: k.Lab.OwnToken, Work: k.Lab.Work}
	a, err := l.TryRequest(c, method, path, body, headers...)
	Must(k.T, err)
	return a
}

const (
	PingPath   = "/sched/" + Version + "/ping"
	DiagPath   = "/scheddb/" + Version + "/diag"
	SubmitPath = "/sched/" + Version + "/job/submit"
)
