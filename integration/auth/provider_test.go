package auth

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestProviderRules checks that the gateway refuses tokens that its identity
// provider has made for other applications, and that a token permits only the
// operations of its scopes. The cluster's own tokens need not follow these rules.
func TestProviderRules(t *testing.T) {
	t.Parallel()
	key := newRSAKey(t)
	l := harness.NewDaemons(t, func(l *harness.Lab) {
		set := filepath.Join(l.Dir, "etc", "jwks.json")
		harness.ReplaceFile(t, set, []byte(`{"keys":[`+harness.PublicJWK(&key.PublicKey, "")+`]}`), 0o644)
		l.AuthParameters = "jwt_key=" + l.Key() + ",jwks=" + set + ",userclaimfield=preferred_username"
	})
	token := func(claims string) string {
		now := time.Now().Unix()
		return harness.SignToken(t, key, `{"alg":"RS256","typ":"JWT"}`, fmt.Sprintf(`{"iat":%d,"exp":%d,%s}`, now, now+3600, strings.ReplaceAll(claims, "OWNER", l.Owner)))
	}
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)) }
	strict, open := address(), address()
	security := "SCHEDRESTD_SECURITY=one_user_claim"
	if os.Geteuid() != 0 { // as in the lab's gateway, this process's user is SlurmUser
		security += ",disable_user_check"
	}
	g := l.StartGateway(t, []string{"SCHEDRESTD_TOKEN_ISSUER=https://id/hpc", "SCHEDRESTD_TOKEN_AUDIENCE=sched", "SCHEDRESTD_TOKEN_SCOPE_CLAIM=scope", security}, strict)
	unruled := l.StartGateway(t, nil, open)

	const here = `"sun":"OWNER","iss":"https://id/hpc","aud":["account","sched"],`
	for _, tt := range []struct {
		name, claims, method, path, body string
		status                           int
		missing                          string // scope
	}{
		{"a list", here + `"scope":"openid compute.read"`, "GET", "/sched/v0.0.43/jobs/", "", 200, ""},
		{"the user in the site's claim", `"preferred_username":"OWNER",` + here + `"scope":"openid compute.read"`, "GET", "/sched/v0.0.43/jobs/", "", 200, ""},
		{"a submission", here + `"scope":"openid compute.read compute.create"`, "POST", "/sched/v0.0.43/job/submit", l.JobRequest("#!/bin/sh\n", nil), 200, ""},
		{"a submission without its scope", here + `"scope":"openid compute.read"`, "POST", "/sched/v0.0.43/job/submit", l.JobRequest("#!/bin/sh\n", nil), 403, "compute.create"},
		{"an account", here + `"scope":"compute.read"`, "GET", "/scheddb/v0.0.43/accounts/", "", 403, "slurmdb.read"},
		{"no scope", here + `"scope":""`, "GET", "/sched/v0.0.43/jobs/", "", 403, "compute.read"},
		{"no claim of scopes", here + `"scp":"compute.read"`, "GET", "/sched/v0.0.43/jobs/", "", 403, "compute.read"},
		{"for another application", `"sun":"OWNER","iss":"https://id/hpc","aud":"account","scope":"compute.read"`, "GET", "/sched/v0.0.43/jobs/", "", 401, ""},
		{"of another realm", `"sun":"OWNER","iss":"https://id/x","aud":"sched","scope":"compute.read"`, "GET", "/sched/v0.0.43/jobs/", "", 401, ""},
		{"of two users", `"preferred_username":"nobody",` + here + `"scope":"compute.read"`, "GET", "/sched/v0.0.43/jobs/", "", 401, ""},
	} {
		send := func(address string) harness.Answer {
			c := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", address) })
			a, err := l.TryRequest(c, tt.method, tt.path, tt.body, "X-SCHED-USER-TOKEN: "+token(tt.claims))
			harness.Must(t, err)
			return a
		}
		a := send(strict)
		if missing := a.Header.Get("WWW-Authenticate"); a.Status != tt.status || tt.missing != "" && !strings.Contains(missing, `scope="`+tt.missing+`"`) {
			t.Errorf("%s: %d, %s, %s", tt.name, a.Status, missing, a.Text)
		}
		if a := send(open); a.Status != http.StatusOK {
			t.Errorf("%s, without rules: %d, %s", tt.name, a.Status, a.Text)
		}
	}
	c := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", strict) })
	a, err := l.TryRequest(c, "POST", "/sched/v0.0.43/job/submit", l.JobRequest("#!/bin/sh\n", nil))
	harness.Must(t, err)
	a.Want(t, http.StatusOK) // the cluster's own token
	for _, warning := range []string{"even if they were made for other applications", "precede that of userclaimfield="} {
		if strings.Contains(g.Logged(), warning) || !strings.Contains(unruled.Logged(), warning) {
			t.Errorf("%q: it must be logged without rules only", warning)
		}
	}
}
