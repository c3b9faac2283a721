package auth

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// refusedBy returns the names of the daemons that refuse token over TCP.
func (d *daemons) refusedBy(token string) (refused []string) {
	d.T.Helper()
	for name, verify := range map[string]func(context.Context, model.Credential) error{
		"schedctld": d.controller("tcp").Verify, "scheddbd": d.accounting("tcp").Verify,
	} {
		err := verify(d.T.Context(), tokenCredential(token))
		if err != nil && errs.KindOf(err) != errs.Unauthenticated {
			d.T.Fatalf("%s: %v", name, err)
		}
		if err != nil {
			refused = append(refused, name)
		}
	}
	return refused
}

func (d *daemons) accepts(token string) bool { return len(d.refusedBy(token)) == 0 }
func (d *daemons) refuses(token string) bool { return len(d.refusedBy(token)) == 2 }

// TestKeySetAlone runs both daemons with only the key set of an identity
// provider. They must verify the provider's tokens, and must create no tokens.
// They must use a new key set without a restart. If the new key set is
// unusable, they must log this and keep the old one.
func TestKeySetAlone(t *testing.T) {
	t.Parallel()
	d := newDaemons(t, "jwks=JWKS,userclaimfield=preferred_username")
	keys := issuerKeys()
	named, unnamed := issuer{key: keys[0], kid: "a"}, issuer{key: keys[0]}
	d.publish(named)
	d.start()
	user := d.Owner
	mapped := named.tokenWithClaim("preferred_username", user, time.Hour)
	for name, token := range map[string]string{
		"with a kid": named.token(user, time.Hour), "without one": unnamed.token(user, time.Hour), "by the site's claim": mapped,
	} {
		if refused := d.refusedBy(token); refused != nil {
			t.Errorf("%s: refused by %v", name, refused)
		}
	}
	stranger := issuer{key: keys[1], kid: "a"}
	for name, token := range map[string]string{
		"another kid": issuer{key: keys[0], kid: "b"}.token(user, time.Hour), "another key": stranger.token(user, time.Hour),
		"HS256 by the site's old key": d.hs256().token(user, time.Hour), "HS256 by the public key": issuer{secret: keys[0].N.Bytes()}.token(user, time.Hour),
		"expired": named.token(user, -time.Minute), "of an unknown user": named.token("no-such-user-here", time.Hour), "by a claim that the site does not use": named.tokenWithClaim("email", user, time.Hour),
	} {
		if !d.refuses(token) {
			t.Errorf("%s: accepted by one of the daemons", name)
		}
	}
	if out, errOut, status := d.run(d.self(), []string{"SCHED_JWT=" + mapped}, "show", "node"); status != 0 || !strings.Contains(out, d.Node) {
		t.Errorf("schedctl with a provider's token: status %d, %s%s", status, out, errOut)
	}
	for _, env := range [][]string{nil, {"SCHED_JWT=" + mapped}} {
		out, errOut, status := d.run(d.self(), env, "token")
		if status != 3 || out != "" || !strings.HasPrefix(errOut, "error: the controller has no key to sign tokens") || !strings.Contains(errOut, "\nhint: ") || !strings.Contains(errOut, "jwt_key=PATH") {
			t.Errorf("schedctl token: status %d, stdout %q, stderr %q", status, out, errOut)
		}
	}
	if log := d.daemonLog("schedctld"); !strings.Contains(log, "token creation disabled") {
		t.Errorf("the log does not say that no tokens are created:\n%s", log)
	}

	next := issuer{key: keys[1], kid: "b"}
	d.publish(named, next)
	harness.Eventually(t, "both daemons accept the new key", func() bool { return d.accepts(next.token(user, time.Hour)) })
	if !d.accepts(mapped) {
		t.Error("a daemon refuses the old key when both keys are published")
	}
	d.publish(next)
	harness.Eventually(t, "no daemon accepts the old key", func() bool { return d.refuses(mapped) })
	d.replaceKeySet(`{"keys":[{"kty":"RSA"`)
	for _, name := range []string{"schedctld", "scheddbd"} {
		harness.Eventually(t, name+" logs that the key set is broken", func() bool { return strings.Contains(d.daemonLog(name), "keeping the current one") })
		for line := range strings.Lines(d.daemonLog(name)) {
			if strings.Contains(line, "keeping the current one") && (!strings.Contains(line, "level=ERROR") || !strings.Contains(line, d.jwksPath()) || !strings.Contains(line, "hint=")) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	if !d.accepts(next.token(user, time.Hour)) || !d.refuses(mapped) {
		t.Error("after an unusable key set, other tokens are accepted than before")
	}
	d.publish(named)
	harness.Eventually(t, "a corrected key set is read", func() bool { return d.accepts(mapped) && d.refuses(next.token(user, time.Hour)) })
}

// TestNewKey checks that a new key takes effect only when the daemons are
// restarted. Until then they must accept tokens of the old key. Afterwards they
// must refuse these tokens.
func TestNewKey(t *testing.T) {
	t.Parallel()
	d := newDaemons(t, "jwt_key=KEY")
	d.start()
	before := d.hs256().token(d.Owner, time.Hour)
	created, _, _ := d.run(d.self(), nil, "token")
	created = strings.TrimSpace(strings.TrimPrefix(created, "SCHED_JWT="))
	harness.Must(t, os.WriteFile(d.Key(), []byte("a new key, of exactly 33 bytes !!"), 0o600))
	after := d.hs256().token(d.Owner, time.Hour)
	if !d.accepts(before) || !d.accepts(created) || !d.refuses(after) {
		t.Error("the new key is accepted before the restart")
	}
	d.start()
	if !d.refuses(before) || !d.refuses(created) || !d.accepts(after) {
		t.Error("the old key is accepted after the restart")
	}
	_, errOut, status := d.run(d.self(), []string{"SCHED_JWT=" + before}, "show", "node")
	if status != 4 || !strings.Contains(errOut, "run: unset SCHED_JWT") {
		t.Errorf("schedctl with an old token: status %d, %s", status, errOut)
	}
}

// TestCreation checks the lifespans of new tokens. It requests the tokens by
// RPC and with schedctl. The daemons must accept both their own tokens and the
// provider's.
func TestCreation(t *testing.T) {
	t.Parallel()
	d := newDaemons(t, "jwks=JWKS,jwt_key=KEY,max_token_lifespan=7200")
	d.publish(issuer{key: issuerKeys()[0]})
	d.start()
	ctx, local := t.Context(), d.controller("unix")
	token, err := local.Token(ctx, model.Credential{}, "", 0) // the lifespan is not set in the request
	harness.Must(t, err)
	if !d.accepts(token) || !d.accepts(issuer{key: issuerKeys()[0]}.token(d.Owner, time.Hour)) {
		t.Error("with a key and a key set, one of the two is refused")
	}
	if lifetime := claimTime(t, token, "exp") - claimTime(t, token, "iat"); lifetime != 1800 {
		t.Errorf("a token lasts for %d seconds by default", lifetime)
	}
	for lifespan, valid := range map[time.Duration]bool{
		time.Second: true, 7200 * time.Second: true, 7201 * time.Second: false, 400 * 24 * time.Hour: false,
		0xffffffff * time.Second: false, // unlimited
	} {
		if _, err := local.Token(ctx, model.Credential{}, "", lifespan); (err == nil) != valid || !valid && errorNumber(err) != fault.InvalidTimeLimit {
			t.Errorf("for %v: %v", lifespan, err)
		}
	}
	for word, wantErr := range map[string]string{
		"lifespan=7201":     `^error: the lifespan exceeds the controller's limit, which is 7200 seconds in this configuration\nhint: .*max_token_lifespan=`,
		"lifespan=31622401": `^error: lifespan=31622401 is too long: the maximum is 31622400 seconds\n`,
		"lifespan=0":        `^error: lifespan=0 is not a number of seconds above 0\nhint: `,
		"lifespan=-5":       `^error: lifespan=-5 is not a number of seconds above 0\nhint: `,
	} {
		out, errOut, status := d.run(d.self(), nil, "token", word)
		wantStatus := 2 // a wrong argument
		if word == "lifespan=7201" {
			wantStatus = 1 // the controller has refused the request
		}
		if status != wantStatus || out != "" || !regexp.MustCompile(wantErr).MatchString(errOut) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", word, status, out, errOut)
		}
	}
	// A token that was requested with another token must not outlive that other
	// token.
	short := d.hs256().token(d.Owner, 20*time.Second)
	token, err = d.controller("tcp").Token(ctx, tokenCredential(short), "", time.Hour)
	harness.Must(t, err)
	if a, b := claimTime(t, token, "exp"), claimTime(t, short, "exp"); a > b {
		t.Errorf("a token that expires at %d was created with one that expires at %d", a, b)
	}
}

// TestCreationIsForAdministrators checks that users who are not administrators
// get tokens only for themselves. If the site forbids even this, they get no
// tokens.
func TestCreationIsForAdministrators(t *testing.T) {
	t.Parallel()
	alice, bob := harness.TwoUsers(t)
	d := newDaemons(t, "jwt_key=KEY")
	d.start()
	root, keys := d.self(), d.hs256()
	tokenEnv := func(u harness.Account) []string { return []string{"SCHED_JWT=" + keys.token(u.Name, time.Hour)} }
	check := func(private bool) {
		t.Helper()
		const errOthers, errAny = "error: only root and the scheduler's user may create tokens for other users\n", "error: only root and the scheduler's user may create tokens on this cluster\n"
		for _, tt := range []struct {
			user    harness.Account
			args    string
			good    bool
			wantErr string
		}{
			{alice, "", !private, errAny},
			{alice, "username=" + alice.Name, !private, errAny},
			{alice, "username=" + bob.Name, false, map[bool]string{false: errOthers, true: errAny}[private]},
			{alice, "username=root", false, map[bool]string{false: errOthers, true: errAny}[private]},
			{root, "", true, ""},
			{root, "username=" + alice.Name, true, ""},
			{root, "username=no-such-user-here", false, "error: unknown user\n"},
		} {
			for _, env := range [][]string{nil, tokenEnv(tt.user)} {
				out, errOut, status := d.run(tt.user, env, append([]string{"token"}, strings.Fields(tt.args)...)...)
				good := status == 0 && strings.HasPrefix(out, "SCHED_JWT=") && errOut == ""
				wantStatus := 4 // no permission
				if tt.user == root {
					wantStatus = 1
				}
				bad := status == wantStatus && out == "" && strings.HasPrefix(errOut, tt.wantErr) && strings.Contains(errOut, "\nhint: ")
				if tt.good && !good || !tt.good && !bad {
					t.Errorf("%s: token %s (%d variables, private %t): status %d, stdout %q, stderr %q", tt.user.Name, tt.args, len(env), private, status, out, errOut)
				}
			}
		}
	}
	check(false)
	// A request with root's token that names another user is treated as that
	// user's own request.
	cred := model.Credential{Token: keys.token("root", time.Hour), ActAs: alice.Name}
	if token, err := d.controller("tcp").Token(t.Context(), cred, "", time.Minute); err != nil || !strings.Contains(payloadOf(t, token), `"sun":"`+alice.Name+`"`) {
		t.Errorf("root's token as alice: %v", err)
	}
	d.setParameters("jwt_key=KEY,disable_token_creation")
	copyTo(t, d.Conf(), d.conf, 0o644)
	d.start()
	check(true)
	if _, err := d.controller("tcp").Token(t.Context(), cred, "", time.Minute); errorNumber(err) != fault.AccessDenied {
		t.Errorf("root's token as alice, where users may have none: %v", err)
	}
}

// TestKeysThatCanNotBeUsed checks that a daemon with unusable keys does not
// start, and that its error names the file, the cause and the remedy.
func TestKeysThatCanNotBeUsed(t *testing.T) {
	t.Parallel()
	d := newDaemons(t, "jwt_key=KEY")
	good, err := os.ReadFile(d.Key())
	harness.Must(t, err)
	write := func(path, text string, mode os.FileMode) func() {
		return func() {
			harness.Must(t, os.WriteFile(path, []byte(text), 0o600))
			harness.Must(t, os.Chmod(path, mode))
		}
	}
	key, set := d.Key(), d.jwksPath()
	for _, tt := range []struct {
		name, parameters string
		setup            func()
		wantErr, hint    string
	}{
		{"no key", "jwt_key=KEY.none", func() {}, key + ".none: no such file", "head -c 32 /dev/urandom >" + key},
		{"a short key", "jwt_key=KEY", write(key, "short", 0o600), key + ": 5 bytes", "head -c 32 /dev/urandom >" + key},
		{"a key for all to read", "jwt_key=KEY", write(key, string(good), 0o644), key + ": mode 0644 lets other users access it", "chmod 0600 " + key},
		{"no key set", "jwks=JWKS", func() {}, set + ": no such file", "curl --fail --output " + set},
		{"a key set that is none", "jwks=JWKS", write(set, "<html>", 0o644), set + ": not a JSON object", "curl --fail --output " + set},
		{"a key set for all to write", "jwks=JWKS", write(set, `{"keys":[]}`, 0o666), set + ": mode 0666 lets other users write it", "chmod o-w " + set},
		{"one of the two", "jwt_key=KEY,jwks=JWKS", func() { write(key, string(good), 0o600)(); write(set, "{}", 0o644)() }, set + ": no list named keys", "curl"},
		{"a relative path", "jwt_key=etc/jwt.key", func() {}, "AuthAltParameters: jwt_key: want an absolute path", ""},
		{"none of both", "userclaimfield=mail", func() {}, "AuthAltTypes=auth/jwt without a key", "jwt_key=PATH"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d.setParameters(tt.parameters)
			tt.setup()
			for _, p := range []string{"schedctld", "scheddbd"} {
				conf, wantErr, hint := d.Conf(), tt.wantErr, tt.hint
				if p == "scheddbd" {
					conf = d.DbdConf()
				}
				if tt.name == "none of both" && p == "schedctld" { // schedctld then looks for Slurm's default key
					wantErr, hint = filepath.Join(d.Dir, "state", "schedctld", "jwt_hs256.key")+": ", "head -c 32"
				}
				text, err := failedStart(t, p, conf)
				if err == nil || !strings.Contains(text, "error: ") || !strings.Contains(text, wantErr) || hint != "" && !strings.Contains(text, "hint: ") || !strings.Contains(text, hint) {
					t.Errorf("%s: %v\n%s", p, err, text)
				}
				if strings.Contains(text, string(good)) {
					t.Errorf("%s shows the key", p)
				}
			}
		})
	}
}

// TestAccountingByTCPNeedsAKey starts a controller that has a key set but no
// key. Such a controller can't sign tickets for the accounting daemon, so it
// could not record jobs. It must report this before it accepts jobs.
func TestAccountingByTCPNeedsAKey(t *testing.T) {
	t.Parallel()
	socket := regexp.MustCompile(`(?m)^AccountingStorageSocket=.*\n`)
	d := newDaemons(t, "jwks=JWKS", func(conf string) string { return socket.ReplaceAllString(conf, "") })
	d.publish(issuer{key: issuerKeys()[0]})
	out, err := failedStart(t, "schedctld", d.Conf())
	if err == nil || !strings.Contains(out, "the key set in jwks= cannot sign") || !strings.Contains(out, "hint: set AccountingStorageSocket=PATH") ||
		!strings.Contains(out, "or jwt_key=PATH beside jwks=") {
		t.Errorf("%v\n%s", err, out)
	}
	d.setParameters("jwks=JWKS,jwt_key=KEY") // the second remedy
	d.start()
	job, err := d.controller("unix").Submit(t.Context(), model.Credential{}, d.heldJob("true"))
	harness.Must(t, err)
	harness.Eventually(t, "the job is recorded by tickets", func() bool {
		stats, _, err := d.accounting("unix").Stats(t.Context(), model.Credential{})
		return err == nil && len(stats.RPCs) > 1
	})
	if log := d.daemonLog("scheddbd"); strings.Contains(log, "refused") {
		t.Errorf("job %d:\n%s", job.StepID.JobID, log)
	}
}

// failedStart runs a daemon that must refuse to start, and returns its output.
// If the daemon does start, it is stopped after a while.
func failedStart(t *testing.T, name, conf string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(harness.Bin, name), "-f", conf).CombinedOutput()
	return string(out), err
}

// payloadOf returns the payload of a token.
func payloadOf(t *testing.T, token string) string {
	t.Helper()
	text, err := decodeBase64url(strings.Split(token, ".")[1])
	harness.Must(t, err)
	return string(text)
}

// claimTime returns the time in the named claim of a token.
func claimTime(t *testing.T, token, name string) (at int64) {
	t.Helper()
	_, rest, _ := strings.Cut(payloadOf(t, token), fmt.Sprintf("%q:", name))
	_, err := fmt.Sscanf(rest, "%d", &at)
	harness.Must(t, err)
	return at
}
