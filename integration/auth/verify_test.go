package auth

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/integration/harness"
)

// TestDaemonVerifies checks how often a gateway without a key asks a daemon
// whether a token is genuine: never for garbage, once a minute for a good
// token, and once a second for a forged token. It must ask only the daemon that
// will serve the request.
func TestDaemonVerifies(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	k := l.Tolled(t)
	c := k.Client()
	defer c.CloseIdleConnections()
	key, err := os.ReadFile(l.Key())
	harness.Must(t, err)
	now := time.Now()
	claims := func(user string) jwt.MapClaims {
		return jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "sun": user}
	}
	forged := harness.Forge(t, []byte("12345678901234567890123456789012"), jwt.SigningMethodHS256, claims(l.Owner))
	good := harness.Forge(t, key, jwt.SigningMethodHS256, claims(l.Owner))
	with := func(token string) string { return "X-SCHED-USER-TOKEN: " + token }
	bad := func(status int, headers ...string) func() { // causes no request to a daemon once the token is known
		return func() { t.Helper(); k.Ask(c, "POST", harness.SubmitPath, "{", headers...).Want(t, status) }
	}
	type step struct {
		what     string
		do       func()
		ctl, dbd int64
	}
	check := func(s step) {
		t.Helper()
		var dbd int64
		ctl := k.Ctl.Cost(func() { dbd = k.Dbd.Cost(s.do) })
		if ctl != s.ctl || dbd != s.dbd {
			t.Errorf("%s cost the controller %d connections and the accounting daemon %d, want %d and %d", s.what, ctl, dbd, s.ctl, s.dbd)
		}
	}
	// Check first that the connections are counted. The first request also
	// determines the protocol version.
	if n := k.Ctl.Cost(func() { k.Ask(c, "GET", harness.PingPath, "").Want(t, 200) }); n < 2 {
		t.Fatalf("a good token and a ping cost %d connections", n)
	}
	if n := k.Dbd.Cost(func() { k.Ask(c, "GET", harness.DiagPath, "").Want(t, 200) }); n < 2 {
		t.Fatalf("a good token and statistics cost %d connections", n)
	}
	head, rest, _ := strings.Cut(forged, ".")
	payload, _, _ := strings.Cut(rest, ".")
	for what, headers := range map[string][]string{
		"nothing":              {"X-SCHED-USER-TOKEN:"},
		"garbage":              {with("good day")},
		"a short signature":    {with(head + "." + payload + ".abc")},
		"no signature":         {with(harness.Forge(t, nil, jwt.SigningMethodNone, claims(l.Owner)))},
		"an end that has been": {with(harness.Forge(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": 1, "exp": 2, "sun": l.Owner}))},
		"a long token":         {with(harness.Forge(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix(), "exp": now.Unix() + 60, "sun": l.Owner, "x": strings.Repeat("x", 8<<10)}))},
		"two tokens":           {with(good), with(forged)},
		"an empty name":        {with(good), "X-SCHED-USER-NAME: "},
	} {
		for _, path := range []string{harness.PingPath, harness.DiagPath} {
			check(step{what, func() { k.Ask(c, "GET", path, "", headers...).Want(t, 401) }, 0, 0})
		}
	}
	check(step{"a token in the query", func() { k.Ask(c, "GET", harness.PingPath+"?access_token="+good, "").Want(t, 401) }, 0, 0})

	c.CloseIdleConnections() // the refused body has ended the connection, and the next worker may not know the token yet
	first := k.Ctl.Cost(bad(400, with(good)))
	if first < 1 || first > 2 {
		t.Errorf("the first verification of a token cost %d connections", first)
	}
	for _, s := range []step{
		{"100 requests with that token", func() {
			for range 100 {
				bad(400, with(good))()
			}
		}, 0, 0},
		{"the name of its user", bad(400, with(good), "X-SCHED-USER-NAME: "+l.Owner), 1, 0},
		{"that name again", bad(400, with(good), "X-SCHED-USER-NAME: "+l.Owner), 0, 0},
		{"a forged token", func() { k.Ask(c, "GET", harness.PingPath, "", with(forged)).Want(t, 401) }, 1, 0},
		{"the same again, when the daemon's no is forgotten", func() {
			time.Sleep(1100 * time.Millisecond)
			k.Ask(c, "GET", harness.PingPath, "", with(forged)).Want(t, 401)
		}, 1, 0},
		{"a good one on that connection", bad(400, with(good)), 0, 0},
	} {
		check(s)
	}
	// The controller's verification does not count for the accounting daemon,
	// which must be asked itself, once.
	for i, most := range []int64{3, 1} { // first for the protocol version, the verification and the statistics
		n := k.Dbd.Cost(func() { k.Ask(c, "GET", harness.DiagPath, "", with(good)).Want(t, 200) })
		if n > most || i == 0 && n < 2 {
			t.Errorf("statistics, %d: %d connections", i, n)
		}
	}
}

// TestRefusedBeforeTheBody checks that a client that sends Expect: 100-continue
// gets 401 and never 100 if its token is garbage, forged or expired, and 100 if
// it is good.
func TestRefusedBeforeTheBody(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	k := l.Tolled(t)
	now := time.Now().Unix()
	forged := harness.Forge(t, []byte("12345678901234567890123456789012"), jwt.SigningMethodHS256, jwt.MapClaims{"iat": now, "exp": now + 3600, "sun": l.Owner})
	for _, tt := range []struct {
		name, token, want string
		asked             bool
	}{
		{"good", l.OwnToken, "HTTP/1.1 100 Continue", true},
		{"forged", forged, "HTTP/1.1 401 Unauthorized", true},
		{"garbage", "a.b.c", "HTTP/1.1 401 Unauthorized", false},
	} {
		for _, address := range []string{k.Address, strings.TrimPrefix(l.URL, "http://")} {
			n := k.Ctl.Cost(func() {
				conn, err := net.Dial("tcp", address)
				harness.Must(t, err)
				defer conn.Close()
				harness.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
				_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: lab\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\nX-SCHED-USER-TOKEN: %s\r\n\r\n", harness.SubmitPath, tt.token)
				harness.Must(t, err)
				in := bufio.NewReader(conn)
				line, err := in.ReadString('\n')
				harness.Must(t, err)
				if strings.TrimSpace(line) != tt.want {
					t.Errorf("%s: %q", tt.name, line)
				}
				if tt.token == l.OwnToken {
					return
				}
				rest, err := io.ReadAll(in) // the connection ends, because the gateway does not wait for the body
				if err != nil || !strings.Contains(string(rest), "Connection: close") {
					t.Errorf("%s: %v: %s", tt.name, err, rest)
				}
			})
			if address == k.Address && (n > 0) != tt.asked {
				t.Errorf("%s cost %d connections", tt.name, n)
			}
		}
	}
}

// TestEachDaemonAlone checks that requests to one daemon are served while the
// other daemon is down, even for a new user. After one daemon's key has
// changed, only that daemon must refuse tokens of the old key.
func TestEachDaemonAlone(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	k := l.Tolled(t)
	ask := func(path, token string) int {
		c := k.Client()
		defer c.CloseIdleConnections()
		status := k.Ask(c, "GET", path, "", "X-SCHED-USER-TOKEN: "+token).Status
		if status == http.StatusBadGateway { // the proxy in front of the daemon accepts connections and closes them when the daemon is down
			status = http.StatusServiceUnavailable
		}
		return status
	}
	fresh := func() string { // a token that no worker has seen
		key, err := os.ReadFile(l.Key())
		harness.Must(t, err)
		now := time.Now()
		return harness.Forge(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "sun": l.Owner, "jti": fmt.Sprint(now.UnixNano())})
	}
	both := func(what, token string, ping, diag int) {
		t.Helper()
		if got := ask(harness.PingPath, token); got != ping {
			t.Errorf("%s: ping %d, want %d", what, got, ping)
		}
		if got := ask(harness.DiagPath, token); got != diag {
			t.Errorf("%s: diag %d, want %d", what, got, diag)
		}
	}
	old := fresh()
	both("all is well", old, 200, 200)
	harness.Must(t, l.Daemons["scheddbd"].Stop())
	both("the accounting daemon is down", fresh(), 200, 503)
	l.Up(l.DBD)
	both("it is back", fresh(), 200, 200)
	harness.Must(t, l.Daemons["schedctld"].Stop())
	both("the controller is down", fresh(), 503, 200)

	harness.Must(t, os.WriteFile(l.Key(), []byte("another key, of thirty-two bytes"), 0o600))
	l.Up(l.Ctld)
	both("the controller has another key", old, 401, 200)
	both("a token made with that one", fresh(), 200, 401)
}
