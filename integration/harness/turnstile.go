package harness

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"schedrestd/demo/site"
	"sync"
	"sync/atomic"
	"testing"
)

// turnstile forwards connections to a daemon and counts them.
type turnstile struct {
	port   int
	passed atomic.Int64
}

// newTurnstile forwards to a port of the loopback interface until the test ends.
func newTurnstile(t *testing.T, to int) *turnstile {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	Must(t, err)
	s := &turnstile{port: ln.Addr().(*net.TCPAddr).Port}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			s.passed.Add(1)
			all.Go(func() {
				defer in.Close()
				out, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", to))
				if err != nil {
					return // the daemon is down: the client sees a connection that ends
				}
				defer out.Close()
				all.Go(func() { io.Copy(out, in); out.(*net.TCPConn).CloseWrite() })
				io.Copy(in, out)
			})
		}
	})
	t.Cleanup(func() { ln.Close(); all.Wait() })
	return s
}

// Cost returns how many connections to the daemon were made while f ran.
func (s *turnstile) Cost(f func()) int64 {
	before := s.passed.Load()
	f()
	return s.passed.Load() - before
}

// Tolled is a gateway that reaches both daemons through turnstiles only.
type Tolled struct {
	*Gate
	Address  string
	Ctl, Dbd *turnstile
}

// Tolled starts a gateway that has no key to verify tokens with, and has these further arguments.
func (l *Lab) Tolled(t *testing.T, args ...string) *Tolled {
	t.Helper()
	return l.TolledWith(t, "jwt_key="+filepath.Join(l.Dir, "etc", "there-is-none"), args...)
}

// TolledWith starts a gateway that has these AuthAltParameters and further arguments.
func (l *Lab) TolledWith(t *testing.T, parameters string, args ...string) *Tolled {
	t.Helper()
	k := &Tolled{Address: fmt.Sprintf("127.0.0.1:%d", FreePort(t)), Ctl: newTurnstile(t, l.Controller), Dbd: newTurnstile(t, l.Accounting)}
	text, err := os.ReadFile(l.Conf())
	Must(t, err)
	for key, value := range map[string]string{
		"SchedctldPort":         fmt.Sprint(k.Ctl.port),
		"AccountingStoragePort": fmt.Sprint(k.Dbd.port),
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
	conf := filepath.Join(l.Dir, "etc", "tolled.conf")
	Must(t, site.Write(conf, string(text)))
	p := l.Restd
	p.Args = nil
	for _, a := range l.Restd.Args[:len(l.Restd.Args)-1] {
		if a == l.Conf() {
			a = conf
		}
		p.Args = append(p.Args, a)
	}
	p.Args = append(append(p.Args, args...), k.Address)
	k.Gate = l.GateOf(t, p, nil)
	return k
}

// Client returns a client with a single connection, which one worker serves.
func (k *Tolled) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
}

// Ask sends a request to the gateway k.
func (k *Tolled) Ask(c *http.Client, method, path, body string, headers ...string) Answer {
	k.T.Helper()
	l := &Lab{Site: k.Lab.Site, T: k.T, URL: "http://" + k.Address, OwnToken: k.Lab.OwnToken, Work: k.Lab.Work}
	a, err := l.Try(c, method, path, body, headers...)
	Must(k.T, err)
	return a
}

const (
	PingPath   = "/sched/" + Version + "/ping"
	DiagPath   = "/scheddb/" + Version + "/diag"
	SubmitPath = "/sched/" + Version + "/job/submit"
)
