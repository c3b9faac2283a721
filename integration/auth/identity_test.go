package auth

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/bundled/demo/site"
	"schedrestd/integration/harness"
	"schedrestd/rpc/message"
)

// credentialRecorder is a controller that answers every request with success,
// and records the credentials that it receives.
type credentialRecorder struct {
	port int
	mu   sync.Mutex
	seen []message.Credential
}

func startRecorder(t *testing.T) *credentialRecorder {
	t.Helper()
	s := &credentialRecorder{}
	s.port = harness.PlayDaemon(t, func(nc net.Conn, f message.Frame) {
		if f.Header.Flags&message.FlagNoCredential == 0 {
			s.mu.Lock()
			s.seen = append(s.seen, f.Credential)
			s.mu.Unlock()
		}
		done, _ := message.Encode(f.Header.Version, 0, message.ResponseRC, nil, &message.RC{})
		nc.Write(done)
	})
	return s
}

// take returns the credentials that were received since the previous call.
func (s *credentialRecorder) take() []message.Credential {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// identityClaims returns the claims that Slurm's use_jwt_client_ids_only
// requires. The user is in the given number of groups.
func identityClaims(user string, groups int) jwt.MapClaims {
	names := map[string]int{}
	for i := range groups {
		names[fmt.Sprintf("project-%04d", i)] = 100_000 + i
	}
	now := time.Now()
	return jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "uid": 70001, "gid": 70001,
		"id": map[string]any{"name": user, "gecos": "A User", "dir": "/home/" + user, "shell": "/bin/sh", "groups": names}}
}

// TestIdentityTokens checks that a gateway before daemons with
// use_jwt_client_ids_only accepts tokens with the user's identity, even for a
// user who does not exist on its machine, and passes them on unchanged. It must
// refuse other tokens, and forged ones, without asking the controller. Without
// SCHEDRESTD_UNKNOWN_USERS=controller, it must refuse a user who does not exist.
func TestIdentityTokens(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	key := []byte("the key of a cluster in a cloud, as text")
	conf, keyPath := filepath.Join(l.Dir, "etc", "cloud.conf"), filepath.Join(l.Dir, "etc", "cloud.key")
	harness.ReplaceFile(t, keyPath, key, 0o600)
	controller := startRecorder(t)
	harness.Must(t, site.WritePrivate(conf, fmt.Sprintf(`ClusterName=cloud
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=%d
SlurmUser=%s
AuthType=auth/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=%s,use_jwt_client_ids_only
`, controller.port, l.Owner, keyPath)))
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	args := []string{}
	for _, a := range l.Restd.Args[:len(l.Restd.Args)-1] {
		if a == l.Conf() {
			a = conf
		}
		args = append(args, a)
	}
	p := l.Restd
	p.Args = append(args, address)
	security, strictEnv := "SCHEDRESTD_SECURITY=require_user_name", []string(nil)
	if os.Geteuid() != 0 { // as in the lab's gateway, this process's user is SlurmUser
		security += ",disable_user_check"
		strictEnv = []string{"SCHEDRESTD_SECURITY=disable_user_check"}
	}
	l.StartGatewayPart(t, p, []string{security, "SCHEDRESTD_UNKNOWN_USERS=controller"})

	strict := p
	strictAddress := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	strict.Args = append(args[:len(args):len(args)], strictAddress)
	l.StartGatewayPart(t, strict, strictEnv)

	sign := func(key []byte, claims jwt.MapClaims) string {
		return harness.NewToken(t, key, jwt.SigningMethodHS256, claims)
	}
	withSun := identityClaims("nobodyhere", 3)
	withSun["sun"] = "somebodyelse"
	plain := identityClaims("nobodyhere", 0)
	plain["sun"] = "nobodyhere"
	delete(plain, "id")
	amazon := identityClaims("", 0)
	amazon["sun"], amazon["id"] = "nobodyhere", map[string]any{"gecos": "A User", "dir": "/home/a", "shell": "/bin/bash", "gids": []int{70001, 70002}}
	super := identityClaims("nobodyhere", 0)
	super["uid"] = 0
	own := identityClaims(l.Owner, 3)
	long := sign(key, identityClaims("nobodyhere", 740))
	if len(long) < 20<<10 {
		t.Fatalf("the long token has %d bytes", len(long))
	}
	for _, tt := range []struct {
		name, token string
		status      int
	}{
		{"an identity", sign(key, identityClaims("nobodyhere", 3)), http.StatusOK},
		{"a long identity", long, http.StatusOK},
		{"the form of AWS", sign(key, amazon), http.StatusOK},
		{"no identity", sign(key, plain), http.StatusUnauthorized},
		{"root's uid, where a request must name its user", sign(key, super), http.StatusUnauthorized},
		{"two users", sign(key, withSun), http.StatusUnauthorized},
		{"a long identity, forged", sign(strangersSecret, identityClaims("nobodyhere", 740)), http.StatusUnauthorized},
		{"too long", sign(key, identityClaims("nobodyhere", 900)), http.StatusUnauthorized},
		{"another uid than that of the account", sign(key, own), http.StatusUnauthorized},
		{"an identity of an unknown user", sign(key, identityClaims("nobodyhere", 3)), http.StatusUnauthorized},
	} {
		address := address
		if tt.name == "an identity of an unknown user" {
			address = strictAddress
		}
		r, err := http.NewRequest(http.MethodGet, "http://"+address+"/slurm/v0.0.43/ping", nil)
		harness.Must(t, err)
		r.Header.Set("X-SLURM-USER-TOKEN", tt.token)
		controller.take()
		a, err := http.DefaultClient.Do(r)
		harness.Must(t, err)
		a.Body.Close()
		seen := controller.take()
		if a.StatusCode != tt.status || (len(seen) > 0) != (tt.status == http.StatusOK) {
			t.Errorf("%s (%d bytes): status %d, %d messages to the controller", tt.name, len(tt.token), a.StatusCode, len(seen))
		}
		for _, c := range seen {
			if c.Token != tt.token || c.ActAs != "" {
				t.Errorf("%s: the controller received another credential, for %q", tt.name, c.ActAs)
			}
		}
	}
}

// TestLongTokenOverHTTP2 checks that a token of more than 16 KiB fits into the
// header of a request with each version of HTTP.
func TestLongTokenOverHTTP2(t *testing.T) {
	t.Parallel()
	s := harness.NewTLSLab(t)
	key, err := os.ReadFile(s.Key())
	harness.Must(t, err)
	claims := jwt.MapClaims{"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(), "sun": s.Owner, "x": strings.Repeat("x", 17<<10)}
	token := harness.NewToken(t, key, jwt.SigningMethodHS256, claims)
	for _, h2 := range []bool{false, true} {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: h2}}
		r, err := http.NewRequest(http.MethodGet, "https://"+s.Addr+harness.PingPath, nil)
		harness.Must(t, err)
		r.Header.Set("X-SCHED-USER-TOKEN", token)
		a, err := c.Do(r)
		harness.Must(t, err)
		a.Body.Close()
		c.CloseIdleConnections()
		if a.StatusCode != http.StatusOK || (a.ProtoMajor == 2) != h2 {
			t.Errorf("%s: status %d for a token of %d bytes", a.Proto, a.StatusCode, len(token))
		}
	}
}
