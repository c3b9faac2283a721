package auth

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestNoTokensForNobody checks that schedctl creates no token for a user whose
// tokens all daemons refuse. The hints must not recommend requesting a token.
func TestNoTokensForNobody(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	nobody, ok := harness.LookupAccount("nobody")
	if !ok || nobody.UID != 65534 {
		t.Skip("nobody is not uid 65534 on this machine")
	}
	alice, _ := harness.TwoUsers(t)
	d := newDaemons(t, "jwt_key=KEY")
	d.start()
	root, ingroup := d.self(), harness.Account{Name: alice.Name, UID: alice.UID}
	roots := []string{"SCHED_JWT=" + d.hs256().token("root", time.Hour)}
	const errNoTokens, errNotAccepted, hintUID = "error: tokens for nobody can't be created: no daemon accepts them\nhint: ", "error: the daemon does not accept the credential\nhint: ", "you are uid "
	for _, tt := range []struct {
		name    string
		user    harness.Account
		env     []string
		args    string
		wantErr string // beginning of the error
		hint    string // expected in the hint
	}{
		{"root for nobody", root, nil, "token username=nobody", errNoTokens, "in group 0"},
		{"root's token for nobody", root, roots, "token username=nobody", errNoTokens, "in group 0"},
		{"nobody", nobody, nil, "token", errNotAccepted, hintUID + "65534, gid 65534"},
		{"nobody, by name", nobody, nil, "token username=nobody", errNotAccepted, hintUID + "65534, gid 65534"},
		{"nobody asks", nobody, nil, "show job", errNotAccepted, hintUID + "65534, gid 65534"},
		{"who is in group 0", ingroup, nil, "token", errNotAccepted, "gid 0: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errOut, status := d.run(tt.user, tt.env, strings.Fields(tt.args)...)
			wantStatus := 1
			if tt.wantErr == errNotAccepted {
				wantStatus = 4
			}
			if status != wantStatus || out != "" || !strings.HasPrefix(errOut, tt.wantErr) || !strings.Contains(errOut, tt.hint) || strings.Contains(errOut, "unset SCHED_JWT") {
				t.Errorf("status %d, stdout %q, stderr %q", status, out, errOut)
			}
		})
	}
	if log := d.daemonLog("schedctld"); strings.Contains(log, `msg="token created"`) || !strings.Contains(log, "uid 65534 or gid 65534 is reserved") {
		t.Errorf("the log:\n%s", log)
	}
}

// TestTokenEndsWithItsAsker checks that a token does not outlive the older
// token with which it was requested. If the new token's lifespan is therefore
// shorter than requested, schedctl must print the new token's expiry time on
// standard error. A user whom the kernel identifies must get the requested
// lifespan.
func TestTokenEndsWithItsAsker(t *testing.T) {
	t.Parallel()
	d := newDaemons(t, "jwt_key=KEY")
	d.start()
	u := d.self()
	old := d.hs256().token(u.Name, 24*time.Hour)
	tokenOutput := regexp.MustCompile(`^SCHED_JWT=(\S+)\n$`)
	for _, tt := range []struct {
		env   []string
		args  string
		warns bool
	}{
		{nil, "token lifespan=2592000", false},
		{[]string{"SCHED_JWT=" + old}, "token lifespan=2592000", true},
		{[]string{"SLURM_JWT=" + old}, "token lifespan=2592000", true},
		{[]string{"SCHED_JWT=" + old}, "token lifespan=3600", false},
		{[]string{"SCHED_JWT=" + d.hs256().token(u.Name, 10*time.Minute)}, "token", true},
	} {
		out, errOut, status := d.run(u, tt.env, strings.Fields(tt.args)...)
		m := tokenOutput.FindStringSubmatch(out)
		if status != 0 || m == nil {
			t.Fatalf("%s: status %d, stdout %q, stderr %q", tt.args, status, out, errOut)
		}
		if !tt.warns {
			if errOut != "" {
				t.Errorf("%s: stderr %q", tt.args, errOut)
			}
			continue
		}
		warning := regexp.MustCompile(`^warning: the new token expires together with the token in use: at (\S+), after \d+ seconds instead of \d+\nhint: .*\n$`).FindStringSubmatch(errOut)
		if warning == nil {
			t.Errorf("%s: stderr %q", tt.args, errOut)
			continue
		}
		if at, err := time.Parse(time.RFC3339, warning[1]); err != nil || at.Unix() != claimTime(t, m[1], "exp") {
			t.Errorf("%s: expires at %d, stderr says %s, %v", tt.args, claimTime(t, m[1], "exp"), warning[1], err)
		}
	}
}
