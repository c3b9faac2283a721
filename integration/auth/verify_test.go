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

// TestDaemonVerifies checks how often a gateway without a key asks a daemon to
// verify a token: never for garbage, at most once a minute for a good token,
// and at most once a second for a forged token. The gateway must ask only the
// daemon that will serve the request.
func TestDaemonVerifies(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	k := l.StartCounted(t)
	c := k.Client()
	defer c.CloseIdleConnections()
	key, err := os.ReadFile(l.Key())
	harness.Must(t, err)
	now := time.Now()
	claims := func(user string) jwt.MapClaims {
		return jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "sun": user}
	}
	forged := harness.NewToken(t, []byte("12345678901234567890123456789012"), jwt.SigningMethodHS256, claims(l.Owner))
	good := harness.NewToken(t, key, jwt.SigningMethodHS256, claims(l.Owner))
	const other = "daemon" // as whom root and SchedUser may act
	tokenHeader := func(token string) string { return "X-SCHED-USER-TOKEN: " + token }
	postInvalid := func(status int, headers ...string) func() { // causes no request to a daemon once the token is known
		return func() { t.Helper(); k.Request(c, "POST", harness.SubmitPath, "{", headers...).Want(t, status) }
	}
	type step struct {
		name     string
		do       func()
		ctl, dbd int64
	}
	check := func(s step) {
		t.Helper()
		var dbd int64
		ctl := k.Ctl.ConnsDuring(func() { dbd = k.Dbd.ConnsDuring(s.do) })
		if ctl != s.ctl || dbd != s.dbd {
			t.Errorf("%s cost the controller %d connections and the accounting daemon %d, want %d and %d", s.name, ctl, dbd, s.ctl, s.dbd)
		}
	}
	// Check first that the connections are counted. The first request also
	// determines the protocol version.
	if n := k.Ctl.ConnsDuring(func() { k.Request(c, "GET", harness.PingPath, "").Want(t, 200) }); n < 2 {
		t.Fatalf("a good token and a ping cost %d connections", n)
	}
	if n := k.Dbd.ConnsDuring(func() { k.Request(c, "GET", harness.DiagPath, "").Want(t, 200) }); n < 2 {
		t.Fatalf("a good token and statistics cost %d connections", n)
	}
	head, rest, _ := strings.Cut(forged, ".")
	payload, _, _ := strings.Cut(rest, ".")
	for name, headers := range map[string][]string{
		"nothing":              {"X-SCHED-USER-TOKEN:"},
		"garbage":              {tokenHeader("good day")},
		"a short signature":    {tokenHeader(head + "." + payload + ".abc")},
		"no signature":         {tokenHeader(harness.NewToken(t, nil, jwt.SigningMethodNone, claims(l.Owner)))},
		"an end that has been": {tokenHeader(harness.NewToken(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": 1, "exp": 2, "sun": l.Owner}))},
		"a long token":         {tokenHeader(harness.NewToken(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix(), "exp": now.Unix() + 60, "sun": l.Owner, "x": strings.Repeat("x", 20<<10)}))},
		"two tokens":           {tokenHeader(good), tokenHeader(forged)},
		"an empty name":        {tokenHeader(good), "X-SCHED-USER-NAME: "},
	} {
		for _, path := range []string{harness.PingPath, harness.DiagPath} {
			check(step{name, func() { k.Request(c, "GET", path, "", headers...).Want(t, 401) }, 0, 0})
		}
	}
	check(step{"a token in the query", func() { k.Request(c, "GET", harness.PingPath+"?access_token="+good, "").Want(t, 401) }, 0, 0})

	c.CloseIdleConnections() // the next request opens a connection, perhaps to a worker that does not know the token yet
	first := k.Ctl.ConnsDuring(postInvalid(400, tokenHeader(good)))
	if first < 1 || first > 2 {
		t.Errorf("the first verification of a token cost %d connections", first)
	}
	// If the connection breaks, the next one may go to the other worker, which
	// asks once.
	if n := k.Ctl.ConnsDuring(func() {
		for range 100 {
			postInvalid(400, tokenHeader(good))()
		}
	}); n > 1 {
		t.Errorf("100 requests with that token cost %d connections", n)
	}
	for _, s := range []step{
		{"the name of its user", postInvalid(400, tokenHeader(good), "X-SCHED-USER-NAME: "+l.Owner), 0, 0},
		{"the name of another user", postInvalid(400, tokenHeader(good), "X-SCHED-USER-NAME: "+other), 1, 0},
		{"that name again", postInvalid(400, tokenHeader(good), "X-SCHED-USER-NAME: "+other), 0, 0},
		{"the name of an unknown user", func() {
			k.Request(c, "GET", harness.PingPath, "", tokenHeader(good), "X-SCHED-USER-NAME: nosuchuser").Want(t, 401)
		}, 0, 0},
		{"a forged token", func() { k.Request(c, "GET", harness.PingPath, "", tokenHeader(forged)).Want(t, 401) }, 1, 0},
		{"the same again, when the daemon's no is forgotten", func() {
			time.Sleep(1100 * time.Millisecond)
			k.Request(c, "GET", harness.PingPath, "", tokenHeader(forged)).Want(t, 401)
		}, 1, 0},
		{"a good one on that connection", postInvalid(400, tokenHeader(good)), 0, 0},
	} {
		check(s)
	}
	// The controller's verification does not apply to the accounting daemon.
	// The gateway must ask the accounting daemon once, too.
	for i, maxConns := range []int64{3, 1} { // the first request may connect for the protocol version, the verification and the statistics
		n := k.Dbd.ConnsDuring(func() { k.Request(c, "GET", harness.DiagPath, "", tokenHeader(good)).Want(t, 200) })
		if n > maxConns || i == 0 && n < 2 {
			t.Errorf("statistics, %d: %d connections", i, n)
		}
	}
}

// TestRefusedBeforeTheBody sends requests with Expect: 100-continue. A client
// whose token is garbage or forged must get 401 and never 100. A client with a
// good token must get 100.
func TestRefusedBeforeTheBody(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	k := l.StartCounted(t)
	now := time.Now().Unix()
	forged := harness.NewToken(t, []byte("12345678901234567890123456789012"), jwt.SigningMethodHS256, jwt.MapClaims{"iat": now, "exp": now + 3600, "sun": l.Owner})
	for _, tt := range []struct {
		name, token, want string
		usesDaemon        bool
	}{
		{"good", l.OwnToken, "HTTP/1.1 100 Continue", true},
		{"forged", forged, "HTTP/1.1 401 Unauthorized", true},
		{"garbage", "a.b.c", "HTTP/1.1 401 Unauthorized", false},
	} {
		for _, address := range []string{k.Address, strings.TrimPrefix(l.URL, "http://")} {
			n := k.Ctl.ConnsDuring(func() {
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
			if address == k.Address && (n > 0) != tt.usesDaemon {
				t.Errorf("%s cost %d connections", tt.name, n)
			}
		}
	}
}

// TestEachDaemonAlone checks that requests to one daemon are served while the
// other daemon is down, even if the token is new to the gateway. After one
// daemon's key has changed, only that daemon must refuse tokens of the old key.
func TestEachDaemonAlone(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	k := l.StartCounted(t)
	send := func(path, token string) int {
		c := k.Client()
		defer c.CloseIdleConnections()
		status := k.Request(c, "GET", path, "", "X-SCHED-USER-TOKEN: "+token).Status
		if status == http.StatusBadGateway { // when the daemon is down, the proxy in front of it accepts connections and closes them
			status = http.StatusServiceUnavailable
		}
		return status
	}
	newToken := func() string { // a token that no worker has seen
		key, err := os.ReadFile(l.Key())
		harness.Must(t, err)
		now := time.Now()
		return harness.NewToken(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "sun": l.Owner, "jti": fmt.Sprint(now.UnixNano())})
	}
	checkBoth := func(name, token string, ping, diag int) {
		t.Helper()
		if got := send(harness.PingPath, token); got != ping {
			t.Errorf("%s: ping %d, want %d", name, got, ping)
		}
		if got := send(harness.DiagPath, token); got != diag {
			t.Errorf("%s: diag %d, want %d", name, got, diag)
		}
	}
	old := newToken()
	checkBoth("all is well", old, 200, 200)
	harness.Must(t, l.Daemons["scheddbd"].Stop())
	checkBoth("the accounting daemon is down", newToken(), 200, 503)
	l.Up(l.DBD)
	checkBoth("it is back", newToken(), 200, 200)
	harness.Must(t, l.Daemons["schedctld"].Stop())
	checkBoth("the controller is down", newToken(), 503, 200)

	harness.Must(t, os.WriteFile(l.Key(), []byte("another key, of thirty-two bytes"), 0o600))
	l.Up(l.Ctld)
	checkBoth("the controller has another key", old, 401, 200)
	checkBoth("a token made with that one", newToken(), 200, 401)
}
