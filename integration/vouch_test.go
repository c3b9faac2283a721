package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/demo/site"
)

// turnstile passes connections on to a daemon, and counts them.
type turnstile struct {
	port   int
	passed atomic.Int64
}

// newTurnstile stands before a port of the loopback interface until the test ends.
func newTurnstile(t *testing.T, to int) *turnstile {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
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

// cost is how many connections to the daemon were made while f was at work.
func (s *turnstile) cost(f func()) int64 {
	before := s.passed.Load()
	f()
	return s.passed.Load() - before
}

// tolled is a gateway that reaches both daemons through turnstiles alone.
type tolled struct {
	*gate
	address  string
	ctl, dbd *turnstile
}

// tolled starts one that has nothing to verify tokens with, with these arguments besides.
func (l *lab) tolled(t *testing.T, args ...string) *tolled {
	t.Helper()
	return l.tolledWith(t, "jwt_key="+filepath.Join(l.Dir, "etc", "there-is-none"), args...)
}

// tolledWith starts one that has these AuthAltParameters.
func (l *lab) tolledWith(t *testing.T, parameters string, args ...string) *tolled {
	t.Helper()
	k := &tolled{address: fmt.Sprintf("127.0.0.1:%d", freePort(t)), ctl: newTurnstile(t, l.Controller), dbd: newTurnstile(t, l.Accounting)}
	text, err := os.ReadFile(l.Conf())
	must(t, err)
	for key, value := range map[string]string{
		"SchedctldPort":         fmt.Sprint(k.ctl.port),
		"AccountingStoragePort": fmt.Sprint(k.dbd.port),
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
	must(t, site.Write(conf, string(text)))
	p := l.restd
	p.Args = nil
	for _, a := range l.restd.Args[:len(l.restd.Args)-1] {
		if a == l.Conf() {
			a = conf
		}
		p.Args = append(p.Args, a)
	}
	p.Args = append(append(p.Args, args...), k.address)
	k.gate = l.gateOf(t, p, nil)
	return k
}

// client is one of a single connection, which one worker serves.
func (k *tolled) client() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
}

// ask sends a request to the gateway k.
func (k *tolled) ask(c *http.Client, method, path, body string, headers ...string) answer {
	k.t.Helper()
	l := &lab{Site: k.lab.Site, t: k.t, url: "http://" + k.address, userToken: k.lab.userToken, work: k.lab.work}
	a, err := l.try(c, method, path, body, headers...)
	must(k.t, err)
	return a
}

const (
	pingPath   = "/sched/" + version + "/ping"
	diagPath   = "/scheddb/" + version + "/diag"
	submitPath = "/sched/" + version + "/job/submit"
)

// TestVouched: a gateway without a key has the daemon that will serve say whether a token is genuine: never of
// garbage, once in a minute of a good one, once in a second of a forged one, and for nobody else.
func TestVouched(t *testing.T) {
	l := newLab(t)
	k := l.tolled(t)
	c := k.client()
	defer c.CloseIdleConnections()
	key, err := os.ReadFile(l.Key())
	must(t, err)
	now := time.Now()
	claims := func(user string) jwt.MapClaims {
		return jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "sun": user}
	}
	forged := forge(t, []byte("12345678901234567890123456789012"), jwt.SigningMethodHS256, claims(l.Owner))
	good := forge(t, key, jwt.SigningMethodHS256, claims(l.Owner))
	with := func(token string) string { return "X-SCHED-USER-TOKEN: " + token }
	bad := func(status int, headers ...string) func() { // costs a daemon nothing once the token is known
		return func() { t.Helper(); k.ask(c, "POST", submitPath, "{", headers...).want(t, status) }
	}
	type step struct {
		what     string
		do       func()
		ctl, dbd int64
	}
	check := func(s step) {
		t.Helper()
		var dbd int64
		ctl := k.ctl.cost(func() { dbd = k.dbd.cost(s.do) })
		if ctl != s.ctl || dbd != s.dbd {
			t.Errorf("%s cost the controller %d connections and the accounting daemon %d, want %d and %d", s.what, ctl, dbd, s.ctl, s.dbd)
		}
	}
	// The turnstiles count: what must be nothing below is something here. The first question finds out the protocol.
	if n := k.ctl.cost(func() { k.ask(c, "GET", pingPath, "").want(t, 200) }); n < 2 {
		t.Fatalf("a good token and a ping cost %d connections", n)
	}
	if n := k.dbd.cost(func() { k.ask(c, "GET", diagPath, "").want(t, 200) }); n < 2 {
		t.Fatalf("a good token and statistics cost %d connections", n)
	}
	head, rest, _ := strings.Cut(forged, ".")
	payload, _, _ := strings.Cut(rest, ".")
	for what, headers := range map[string][]string{
		"nothing":              {"X-SCHED-USER-TOKEN:"},
		"garbage":              {with("good day")},
		"a short signature":    {with(head + "." + payload + ".abc")},
		"no signature":         {with(forge(t, nil, jwt.SigningMethodNone, claims(l.Owner)))},
		"an end that has been": {with(forge(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": 1, "exp": 2, "sun": l.Owner}))},
		"a long token":         {with(forge(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix(), "exp": now.Unix() + 60, "sun": l.Owner, "x": strings.Repeat("x", 8<<10)}))},
		"two tokens":           {with(good), with(forged)},
		"an empty name":        {with(good), "X-SCHED-USER-NAME: "},
	} {
		for _, path := range []string{pingPath, diagPath} {
			check(step{what, func() { k.ask(c, "GET", path, "", headers...).want(t, 401) }, 0, 0})
		}
	}
	check(step{"a token in the query", func() { k.ask(c, "GET", pingPath+"?access_token="+good, "").want(t, 401) }, 0, 0})

	c.CloseIdleConnections() // a refused body has ended it; another worker may be next, which knows nothing yet
	first := k.ctl.cost(bad(400, with(good)))
	if first < 1 || first > 2 {
		t.Errorf("the first word for a token cost %d connections", first)
	}
	for _, s := range []step{
		{"100 requests with that token", func() {
			for range 100 {
				bad(400, with(good))()
			}
		}, 0, 0},
		{"the name of its user", bad(400, with(good), "X-SCHED-USER-NAME: "+l.Owner), 1, 0},
		{"that name again", bad(400, with(good), "X-SCHED-USER-NAME: "+l.Owner), 0, 0},
		{"a forged token", func() { k.ask(c, "GET", pingPath, "", with(forged)).want(t, 401) }, 1, 0},
		{"the same again, when the daemon's no is forgotten", func() {
			time.Sleep(1100 * time.Millisecond)
			k.ask(c, "GET", pingPath, "", with(forged)).want(t, 401)
		}, 1, 0},
		{"a good one on that connection", bad(400, with(good)), 0, 0},
	} {
		check(s)
	}
	// The controller's word is none of the accounting daemon's, who is asked himself, and asked no more.
	for i, most := range []int64{3, 1} { // the first: which protocol is spoken, his word, the statistics
		n := k.dbd.cost(func() { k.ask(c, "GET", diagPath, "", with(good)).want(t, 200) })
		if n > most || i == 0 && n < 2 {
			t.Errorf("statistics, %d: %d connections", i, n)
		}
	}
}

// TestRefusedBeforeTheBody: who waits for leave to send a body is told 401, and never to go on, when
// the token is garbage, forged or expired; leave is what a good one gets.
func TestRefusedBeforeTheBody(t *testing.T) {
	l := newLab(t)
	k := l.tolled(t)
	now := time.Now().Unix()
	forged := forge(t, []byte("12345678901234567890123456789012"), jwt.SigningMethodHS256, jwt.MapClaims{"iat": now, "exp": now + 3600, "sun": l.Owner})
	for _, tt := range []struct {
		name, token, want string
		asked             bool
	}{
		{"good", l.userToken, "HTTP/1.1 100 Continue", true},
		{"forged", forged, "HTTP/1.1 401 Unauthorized", true},
		{"garbage", "a.b.c", "HTTP/1.1 401 Unauthorized", false},
	} {
		for _, address := range []string{k.address, strings.TrimPrefix(l.url, "http://")} {
			n := k.ctl.cost(func() {
				conn, err := net.Dial("tcp", address)
				must(t, err)
				defer conn.Close()
				must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
				_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: lab\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\nX-SCHED-USER-TOKEN: %s\r\n\r\n", submitPath, tt.token)
				must(t, err)
				in := bufio.NewReader(conn)
				line, err := in.ReadString('\n')
				must(t, err)
				if strings.TrimSpace(line) != tt.want {
					t.Errorf("%s: %q", tt.name, line)
				}
				if tt.token == l.userToken {
					return
				}
				rest, err := io.ReadAll(in) // the connection ends: nobody waits for the body
				if err != nil || !strings.Contains(string(rest), "Connection: close") {
					t.Errorf("%s: %v: %s", tt.name, err, rest)
				}
			})
			if address == k.address && (n > 0) != tt.asked {
				t.Errorf("%s cost %d connections", tt.name, n)
			}
		}
	}
}

// TestEachDaemonAlone: what one daemon serves is served while the other is down, also to who has not been
// here before; and each refuses, after a change of its key, what the other still takes.
func TestEachDaemonAlone(t *testing.T) {
	l := newLab(t)
	k := l.tolled(t)
	ask := func(path, token string) int {
		c := k.client()
		defer c.CloseIdleConnections()
		status := k.ask(c, "GET", path, "", "X-SCHED-USER-TOKEN: "+token).status
		if status == http.StatusBadGateway { // through a turnstile, a daemon that is down is one that hangs up, sooner or later
			status = http.StatusServiceUnavailable
		}
		return status
	}
	fresh := func() string { // never seen by any worker
		key, err := os.ReadFile(l.Key())
		must(t, err)
		now := time.Now()
		return forge(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "sun": l.Owner, "jti": fmt.Sprint(now.UnixNano())})
	}
	both := func(what, token string, ping, diag int) {
		t.Helper()
		if got := ask(pingPath, token); got != ping {
			t.Errorf("%s: ping %d, want %d", what, got, ping)
		}
		if got := ask(diagPath, token); got != diag {
			t.Errorf("%s: diag %d, want %d", what, got, diag)
		}
	}
	old := fresh()
	both("all is well", old, 200, 200)
	must(t, l.daemons["scheddbd"].Stop())
	both("the accounting daemon is down", fresh(), 200, 503)
	l.up(l.dbd)
	both("it is back", fresh(), 200, 200)
	must(t, l.daemons["schedctld"].Stop())
	both("the controller is down", fresh(), 503, 200)

	must(t, os.WriteFile(l.Key(), []byte("another key, of thirty-two bytes"), 0o600))
	l.up(l.ctld)
	both("the controller has another key", old, 401, 200)
	both("a token made with that one", fresh(), 200, 401)
}
