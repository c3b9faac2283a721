package slurm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/integration/harness"
)

// gatewayFor starts our gateway with a setting for users that its machine does
// not know.
func (m *machine) gatewayFor(t *testing.T, unknown string) *daemon {
	t.Helper()
	return m.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_UNKNOWN_USERS=" + unknown},
		"/opt/gateway/schedrestd", "-v", "-f", m.conf(), "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket)
}

// sign returns a token with the cluster's key.
func (m *machine) sign(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(m.root, "etc/slurm/jwt_hs256.key"))
	must(t, err)
	now := time.Now()
	claims["iat"], claims["exp"] = now.Unix(), now.Add(time.Hour).Unix()
	return harness.NewToken(t, key, jwt.SigningMethodHS256, claims)
}

// expectStatus sends a request that only reads, and one that submits a job, and
// compares the statuses. If submit is 0, any status but 401 is right: only the
// controller refuses the job, for example because the user has no association.
func (m *machine) expectStatus(t *testing.T, name string, read, submit int, headers ...string) {
	t.Helper()
	c := m.client(gatewaySocket)
	a, err := sendRequest(c, "GET", "/slurm/v0.0.42/nodes", "", headers...)
	must(t, err)
	if a.status != read {
		t.Errorf("%s: nodes: status %d, want %d: %.300s", name, a.status, read, a.body)
	}
	a, err = sendRequest(c, "POST", "/slurm/v0.0.42/job/submit", submission("/tmp/unknown.out"), headers...)
	must(t, err)
	if submit == 0 && a.status == http.StatusUnauthorized || submit != 0 && a.status != submit {
		t.Errorf("%s: submission: status %d, want %d: %.300s", name, a.status, submit, a.body)
	}
}

// TestUnknownUsers checks that the gateway refuses users that nobody knows, whom
// some releases of Slurm serve as uid 99, and leaves them to the controller only
// if it is configured so. A new user must be served soon, and a deleted one
// refused.
func TestUnknownUsers(t *testing.T) {
	m := freshCluster(t)
	erna := "X-SLURM-USER-TOKEN: " + m.sign(t, jwt.MapClaims{"sun": "erna"})
	root := "X-SLURM-USER-TOKEN: " + m.sign(t, jwt.MapClaims{"sun": "root"})
	const carol = "X-SLURM-USER-NAME: carol"

	t.Run("left to the controller", func(t *testing.T) {
		m.gatewayFor(t, "controller")
		m.expectStatus(t, "a token", http.StatusOK, 0, erna)
		m.expectStatus(t, "a name", http.StatusOK, 0, root, carol)
	})

	d := m.gatewayFor(t, "refuse")
	m.expectStatus(t, "a token of an unknown user", http.StatusUnauthorized, http.StatusUnauthorized, erna)
	m.expectStatus(t, "the name of an unknown user", http.StatusUnauthorized, http.StatusUnauthorized, root, carol)
	m.expectStatus(t, "the user nobody", http.StatusUnauthorized, http.StatusUnauthorized, root, "X-SLURM-USER-NAME: nobody")
	m.expectStatus(t, "a user", http.StatusOK, http.StatusOK, root, "X-SLURM-USER-NAME: alice")
	m.expectStatus(t, "a token of a user", http.StatusOK, http.StatusOK, "X-SLURM-USER-TOKEN: "+m.token)
	log, err := os.ReadFile(d.log)
	must(t, err)
	for _, line := range []string{"no user of this machine has this name", "unverified_user=erna", `unverified_user="carol by root"`, "uid 65534, which stands for unknown users"} {
		if !strings.Contains(string(log), line) {
			t.Errorf("the log has no %q", line)
		}
	}
	m.run(t, "root", "useradd", "-u", "20077", "-U", "carol")
	t.Cleanup(func() { m.try("root", "userdel", "carol") })
	served := func(status int) func() bool {
		return func() bool {
			a, err := sendRequest(m.client(gatewaySocket), "GET", "/slurm/v0.0.42/nodes", "", root, carol)
			return err == nil && a.status == status
		}
	}
	began := time.Now()
	eventually(t, "the new user is served", served(http.StatusOK))
	t.Logf("a new user is served after %s", time.Since(began).Round(time.Second))
	m.run(t, "root", "userdel", "carol")
	began = time.Now()
	eventually(t, "the deleted user is refused", served(http.StatusUnauthorized))
	t.Logf("a deleted user is refused after %s", time.Since(began).Round(time.Second))
}

// TestUnknownIdentities checks the same for tokens that contain the user's uid,
// which the controller does not look up. The uid of a user that the gateway's
// machine knows must be the same, even if the controller decides about the others.
func TestUnknownIdentities(t *testing.T) {
	if cluster.release == "24.11" || cluster.release == "22.05" {
		notForThisRun(t, "use_jwt_client_ids is new in 26.05")
	}
	m := freshCluster(t)
	file := filepath.Join(m.root, "etc/slurm/slurm.conf")
	text, err := os.ReadFile(file)
	must(t, err)
	changed := strings.Replace(string(text), "AuthAltParameters=", "AuthAltParameters=use_jwt_client_ids_only,", 1)
	must(t, os.WriteFile(file, []byte(changed), 0)) // keeps owner and mode
	t.Cleanup(func() { must(t, os.WriteFile(file, text, 0)) })
	m.restartController(t)
	token := func(user string, uid int) string {
		return "X-SLURM-USER-TOKEN: " + m.sign(t, jwt.MapClaims{"sun": user, "uid": uid, "gid": uid,
			"id": map[string]any{"name": user, "gecos": "A User", "dir": "/tmp", "shell": "/bin/sh", "groups": map[string]int{user: uid}}})
	}
	for _, tt := range []struct {
		name, unknown, token string
		status               int
	}{
		{"an unknown user", "refuse", token("erna", 70001), http.StatusUnauthorized},
		{"an unknown user", "controller", token("erna", 70001), http.StatusOK},
		{"nobody's uid", "controller", token("erna", 65534), http.StatusUnauthorized},
		{"a user", "refuse", token("alice", 20001), http.StatusOK},
		{"a user with another uid", "refuse", token("alice", 20002), http.StatusUnauthorized},
		{"a user with another uid", "controller", token("alice", 20002), http.StatusUnauthorized},
	} {
		t.Run(tt.name+", "+tt.unknown, func(t *testing.T) {
			m.gatewayFor(t, tt.unknown)
			a, err := sendRequest(m.client(gatewaySocket), "GET", "/slurm/v0.0.42/nodes", "", tt.token)
			must(t, err)
			if a.status != tt.status {
				t.Errorf("status %d, want %d: %.300s", a.status, tt.status, a.body)
			}
		})
	}
}

// TestShortTokens checks what docs/INCIDENTS.md says about tokens: with a token
// of a few seconds a user gets one of years, unless the configuration prevents
// this.
func TestShortTokens(t *testing.T) {
	m := freshCluster(t)
	file := filepath.Join(m.root, "etc/slurm/slurm.conf")
	text, err := os.ReadFile(file)
	must(t, err)
	t.Cleanup(func() { must(t, os.WriteFile(file, text, 0)) })
	for _, tt := range []struct {
		parameter string
		lifespan  string
		granted   bool
	}{
		{"", "315360000", true},
		{"max_token_lifespan=3600", "315360000", false},
		{"max_token_lifespan=3600", "3600", true},
		{"disable_token_creation", "60", false},
	} {
		changed := strings.Replace(string(text), "AuthAltParameters=", "AuthAltParameters="+strings.TrimPrefix(tt.parameter+",", ","), 1)
		must(t, os.WriteFile(file, []byte(changed), 0))
		m.restartController(t)
		short := strings.TrimPrefix(m.run(t, "root", "scontrol", "token", "username=alice", "lifespan=30"), "SLURM_JWT=")
		out, err := m.try("alice", "env", "SLURM_JWT="+short, "scontrol", "token", "lifespan="+tt.lifespan)
		if (err == nil) != tt.granted {
			t.Errorf("%q, lifespan=%s: %v", tt.parameter, tt.lifespan, err)
		}
		if err != nil {
			continue
		}
		payload, err := base64.RawURLEncoding.DecodeString(strings.Split(strings.TrimPrefix(out, "SLURM_JWT="), ".")[1])
		must(t, err)
		var dates struct{ Exp, Iat int64 }
		must(t, json.Unmarshal(payload, &dates))
		if got := fmt.Sprint(dates.Exp - dates.Iat); got != tt.lifespan {
			t.Errorf("%q: a token of %s seconds", tt.parameter, got)
		}
		t.Logf("%q: a token of 30 s became one of %d s", tt.parameter, dates.Exp-dates.Iat)
	}
}
