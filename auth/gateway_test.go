package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/internal/errs"
)

// gatewayRules are those of a gateway of the cluster c that accepts gateway tokens.
var gatewayRules = Rules{Gateway: "c"}

// gatewayToken returns a gateway token that is right, with changes.
func gatewayToken(t *testing.T, changes ...func(*gatewaytoken.Token)) string {
	t.Helper()
	uid := uint32(1000)
	token := gatewaytoken.Token{Cluster: "c", User: "alice", UID: &uid, Scopes: scope.ComputeRead, ID: gatewaytoken.NewID(), Issued: now, Expires: now.Add(time.Hour)}
	for _, change := range changes {
		change(&token)
	}
	text, err := CreateGatewayToken(testKey(t), token)
	must(t, err)
	return text
}

// TestGatewayTokenAtOthers checks that daemons, and gateways without the register,
// refuse a gateway token, and that no token of another kind is one.
func TestGatewayTokenAtOthers(t *testing.T) {
	token := gatewayToken(t)
	derived := testKey(t).Derive("gateway tokens")
	for name, v := range map[string]Verifier{
		"a daemon":                            {Key: testKey(t), Now: clock},
		"a daemon with the derived key":       {Key: derived, Now: clock},
		"a daemon with the rules of gateways": {Key: testKey(t), Rules: gatewayRules, Now: clock},
	} {
		if c, err := v.Verify(token); err == nil {
			t.Errorf("%s accepts it: %+v", name, c)
		}
	}
	own, err := Create(testKey(t), "alice", time.Hour, now)
	must(t, err)
	forPurpose, err := Create(derived, "alice", time.Hour, now)
	must(t, err)
	for name, text := range map[string]string{"of the cluster": own, "of the derived key": forPurpose} {
		if c, err := Inspect(text, Options{Rules: gatewayRules, Now: clock}); err != nil || c.Gateway || c.Withheld != 0 {
			t.Errorf("the token %s: %+v, %v", name, c, err)
		}
	}
	if _, err := CreateGatewayToken(Key{}, gatewaytoken.Token{}); errs.KindOf(err) != errs.Internal {
		t.Errorf("created without a key: %v", err)
	}
	if _, err := CreateGatewayToken(testKey(t), gatewaytoken.Token{}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("created from nothing: %v", err)
	}
}

// TestGatewayTokenInRequest checks which requests may have a gateway token.
func TestGatewayTokenInRequest(t *testing.T) {
	good := gatewayToken(t)
	with := func(change func(*gatewaytoken.Token)) string { return gatewayToken(t, change) }
	opt := Options{JWT: true, Local: true, UID: 1000, User: func() string { return "alice" }, Rules: gatewayRules, Now: clock}
	none, noJWT, named := opt, opt, opt
	none.Rules, noJWT.JWT = Rules{}, false
	named.Privileged = func(user string, uid *uint32) bool { return user == "root" || uid != nil && *uid == 0 }
	for _, tt := range []struct {
		name, token, user string
		opt               Options
		reason            string // "" if it is accepted
	}{
		{"good", good, "", opt, ""},
		{"its own user", good, "alice", opt, ""},
		{"another user", good, "bob", opt, "can't act as another user"},
		{"another user, in other letters", good, "Alice", opt, "can't act as another user"},
		{"root", good, "root", opt, "can't act as another user"},
		{"no register", good, "", none, "a gateway token, but SCHEDRESTD_TOKEN_REGISTER is not set"},
		{"no register, its own user", good, "alice", none, "a gateway token, but SCHEDRESTD_TOKEN_REGISTER is not set"},
		{"no tokens", good, "", noJWT, "not enabled"},
		{"another cluster", with(func(t *gatewaytoken.Token) { t.Cluster = "d" }), "", opt, "of another cluster"},
		{"root's, for another user", with(func(t *gatewaytoken.Token) { t.User = "root" }), "alice", opt, "can't act as another user"},
		{"root's", with(func(t *gatewaytoken.Token) { t.User = "root" }), "", opt, ""},
		{"root's, with require_user_name", with(func(t *gatewaytoken.Token) { t.User = "root" }), "", named, "privileged user"},
		{"root's name, with require_user_name", with(func(t *gatewaytoken.Token) { t.User = "root" }), "root", named, "privileged user"},
		{"uid 0, with require_user_name", with(func(t *gatewaytoken.Token) { *t.UID = 0 }), "", named, "privileged user"},
		{"a user's, with require_user_name", good, "", named, ""},
		{"expired", with(func(t *gatewaytoken.Token) { t.Issued, t.Expires = now.Add(-time.Hour), now }), "", opt, "expired"},
		{"the last second", with(func(t *gatewaytoken.Token) { t.Issued, t.Expires = now.Add(-time.Hour), now.Add(time.Second) }), "", opt, ""},
		{"issued by a clock that is ahead", with(func(t *gatewaytoken.Token) { t.Issued = now.Add(leeway) }), "", opt, ""},
		{"issued in the future", with(func(t *gatewaytoken.Token) { t.Issued = now.Add(leeway + time.Second) }), "", opt, "from now"},
	} {
		for _, spelling := range []string{"SCHED", "SLURM"} {
			header := "X-" + spelling + "-USER-TOKEN: " + tt.token
			if tt.user != "" {
				header += "\nX-" + spelling + "-USER-NAME: " + tt.user
			}
			tt.opt.Seen = new(Seen)
			for range 2 { // the second time, it is remembered
				c, err := FromRequest(request(t, &unix, header), tt.opt)
				if tt.reason != "" {
					if err == nil || !strings.Contains(reasonOf(err), tt.reason) || errs.KindOf(err) != errs.Unauthenticated {
						t.Errorf("%s: %+v, %v, want %q", tt.name, c, err, tt.reason)
					}
					continue
				}
				if err != nil || !c.Claims.Gateway || c.Local || c.Claims.Withheld != scope.All&^scope.ComputeRead || !c.proof.gateway {
					t.Errorf("%s: %+v, %v", tt.name, c, err)
				}
			}
		}
	}
}

// TestPortalInRequest checks which requests may have a gateway token that acts for
// the members of a group. Each must name a user, whatever the token's own user is.
func TestPortalInRequest(t *testing.T) {
	portal := gatewayToken(t, func(t *gatewaytoken.Token) { t.User, t.ActFor = "portal", "students" })
	opt := Options{JWT: true, Local: true, UID: 1000, User: func() string { return "alice" }, Rules: gatewayRules, Now: clock}
	named := opt
	named.Privileged = func(user string, _ *uint32) bool { return user == "root" || user == "slurm" }
	for _, tt := range []struct {
		name, headers string // the token and these headers
		opt           Options
		user          string // of the credential; "" if it is refused
		reason        string
	}{
		{"a name", "X-SCHED-USER-NAME: alice", opt, "alice by portal", ""},
		{"a name in Slurm's spelling", "X-SLURM-USER-NAME: alice", opt, "alice by portal", ""},
		{"its own name", "X-SCHED-USER-NAME: portal", opt, "portal", ""},
		{"a name, with require_user_name", "X-SCHED-USER-NAME: alice", named, "alice by portal", ""},
		{"no name", "", opt, "", "name the user to act as"},
		{"no name, with require_user_name", "", named, "", "name the user to act as"},
		{"an empty name", "X-SCHED-USER-NAME:", opt, "", "empty"},
		{"two names", "X-SCHED-USER-NAME: alice\nX-SLURM-USER-NAME: alice", opt, "", "2 headers"},
		{"a name that Connection lists", "X-SCHED-USER-NAME: alice\nConnection: X-SCHED-USER-NAME", opt, "", "Connection"},
		{"a quote", `X-SCHED-USER-NAME: a","sun":"root`, opt, "", "not a user name"},
		{"root, with require_user_name", "X-SCHED-USER-NAME: root", named, "", "privileged user"},
		{"SlurmUser, with require_user_name", "X-SCHED-USER-NAME: slurm", named, "", "privileged user"},
	} {
		tt.opt.Seen = new(Seen)
		for range 2 { // the second time, it is remembered
			c, err := FromRequest(request(t, &unix, strings.TrimSuffix("X-SCHED-USER-TOKEN: "+portal+"\n"+tt.headers, "\n")), tt.opt)
			if c.User() != tt.user || (err == nil) != (tt.user != "") || err != nil && (!strings.Contains(reasonOf(err), tt.reason) || errs.KindOf(err) != errs.Unauthenticated) {
				t.Errorf("%s: %q, %v", tt.name, c.User(), err)
			}
			if err == nil && c.Claims.ActFor != "students" {
				t.Errorf("%s: %+v", tt.name, c.Claims)
			}
		}
	}
}

// TestAuthenticatorOfPortals checks that the keeper decides about the user for whom
// a token of a portal acts, that no daemon is asked, and that the user must exist.
func TestAuthenticatorOfPortals(t *testing.T) {
	portal := gatewayToken(t, func(t *gatewaytoken.Token) { t.User, t.ActFor = "portal", "students" })
	for _, tt := range []struct {
		name   string
		answer Answer
		uidErr error
		kind   errs.Kind
	}{
		{"a member", Good, nil, 0},
		{"not a member", NotForUser, nil, errs.Denied},
		{"revoked", Revoked, nil, errs.Unauthenticated},
		{"the keeper does not know", Unknown, nil, errs.Unavailable},
		{"the worker finds no such user", Good, errs.New(errs.NotFound, "no such user"), errs.Unauthenticated},
		{"the worker can't look the user up", Good, errs.New(errs.Unavailable, "no answer"), errs.Unavailable},
	} {
		a, excused := newTestAuthenticator(nil), 0
		a.Excuse = func(context.Context) { excused++ }
		a.Gateway = func(_ context.Context, _ Signature, actAs string) Answer {
			if actAs != "alice" {
				t.Errorf("%s: the keeper is asked about %q", tt.name, actAs)
			}
			return tt.answer
		}
		a.UserID = func(_ context.Context, _ Credential, name string) (uint32, error) {
			if name != "alice" || tt.answer != Good {
				t.Errorf("%s: %q is looked up", tt.name, name)
			}
			return 1001, tt.uidErr // not the uid in the token, which is that of its own user
		}
		c, err := FromRequest(request(t, &tcp, "X-SCHED-USER-TOKEN: "+portal+"\nX-SCHED-USER-NAME: alice"), Options{JWT: true, Rules: gatewayRules, Now: clock})
		must(t, err)
		err = a.authenticate(c, controller)
		if (err == nil) != (tt.kind == 0) || err != nil && errs.KindOf(err) != tt.kind || len(a.daemonCalls) != 0 {
			t.Errorf("%s: %v, daemons asked %v", tt.name, err, a.daemonCalls)
		}
		if (excused > 0) != (tt.kind == errs.Unauthenticated) {
			t.Errorf("%s: excused %d times", tt.name, excused)
		}
	}
}

// TestGatewayTokenRemembered checks that a gateway token that need not be parsed
// again has the same proof, and that its dates still count.
func TestGatewayTokenRemembered(t *testing.T) {
	token, at := gatewayToken(t), now
	opt := Options{JWT: true, Rules: gatewayRules, Seen: new(Seen), Now: func() time.Time { return at }}
	first, err := FromRequest(requestWith(token), opt)
	must(t, err)
	again, err := FromRequest(requestWith(token), opt)
	must(t, err)
	if string(first.proof.Bytes) != string(again.proof.Bytes) || first.proof.Signed != again.proof.Signed || !again.proof.gateway || again.Claims != first.Claims {
		t.Errorf("%+v, and then %+v", first, again)
	}
	at = now.Add(time.Hour)
	if _, err := FromRequest(requestWith(token), opt); err == nil {
		t.Error("accepted after its end")
	}
}

// TestAuthenticatorOfGatewayTokens checks that only the keeper decides about a
// gateway token, each time, and that no daemon is asked about it. A client that
// uses a revoked token does not guess.
func TestAuthenticatorOfGatewayTokens(t *testing.T) {
	good := Good
	for _, tt := range []struct {
		name   string
		answer Answer
		nobody bool // decides about gateway tokens
		kind   errs.Kind
	}{
		{"good", Good, false, 0},
		{"forged", Bad, false, errs.Unauthenticated},
		{"revoked", Revoked, false, errs.Unauthenticated},
		{"the keeper does not know", Unknown, false, errs.Unavailable},
		{"no keeper", Good, true, errs.Unavailable},
	} {
		for _, actAs := range []string{"", "alice"} {
			a, asked, excused := newTestAuthenticator(&good), 0, 0
			a.Excuse = func(context.Context) { excused++ }
			a.answer = errors.New("a daemon was asked")
			a.Gateway = func(context.Context, Signature, string) Answer { asked++; return tt.answer }
			if tt.nobody {
				a.Gateway = nil
			}
			c, err := FromRequest(request(t, &tcp, "X-SCHED-USER-TOKEN: "+gatewayToken(t)), Options{JWT: true, Rules: gatewayRules, Now: clock})
			must(t, err)
			c.ActAs = actAs
			for range 3 {
				if err := a.authenticate(c, controller); err != nil && errs.KindOf(err) != tt.kind || (err == nil) != (tt.kind == 0) {
					t.Errorf("%s: %v", tt.name, err)
				}
				a.Forget(c, controller)
			}
			if (excused > 0) != (tt.answer == Revoked) {
				t.Errorf("%s: excused %d times", tt.name, excused)
			}
			if !tt.nobody && asked != 3 || len(a.daemonCalls) != 0 || a.keyCalls != 0 {
				t.Errorf("%s: the keeper was asked %d times, daemons %v, the cluster's key %d times", tt.name, asked, a.daemonCalls, a.keyCalls)
			}
		}
	}
}

// TestGatewayTokenRevokedMeanwhile checks that a token is refused from the first
// request after its revocation on.
func TestGatewayTokenRevokedMeanwhile(t *testing.T) {
	a, answer := newTestAuthenticator(nil), Good
	a.Gateway = func(context.Context, Signature, string) Answer { return answer }
	c, err := FromRequest(requestWith(gatewayToken(t)), Options{JWT: true, Rules: gatewayRules, Now: clock})
	must(t, err)
	a.expect(t, c, controller, 0, 0)
	answer = Revoked
	if err := a.authenticate(c, controller); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("revoked: %v", err)
	}
}

// TestUserOfGatewayToken checks that the user of a gateway token is the one for
// whom it was created: a name that has got another uid since is refused.
func TestUserOfGatewayToken(t *testing.T) {
	for uid, accepted := range map[uint32]bool{1000: true, 1001: false, 0: false, kernelNobody: false} {
		a := newTestAuthenticator(nil)
		a.Gateway = func(context.Context, Signature, string) Answer { return Good }
		a.UserID = func(context.Context, Credential, string) (uint32, error) { return uid, nil }
		c, err := FromRequest(requestWith(gatewayToken(t)), Options{JWT: true, Rules: gatewayRules, Now: clock})
		must(t, err)
		if err := a.authenticate(c, controller); (err == nil) != accepted {
			t.Errorf("the user has uid %d: %v", uid, err)
		}
	}
}

// TestExplainGatewayToken checks that the explanation of a gateway token needs only
// the cluster's key.
func TestExplainGatewayToken(t *testing.T) {
	key, other := testKey(t), Key{bytes: func() []byte { return []byte(strings.Repeat("k", 32)) }}
	token := gatewayToken(t)
	for _, tt := range []struct {
		name, token, cluster string
		key                  Key
		want                 string // "" if nothing refuses it
	}{
		{"good", token, "c", key, ""},
		{"another cluster", token, "d", key, "of another cluster"},
		{"another key", token, "c", other, "wrong signature"},
		{"no register", token, "", key, "SCHEDRESTD_TOKEN_REGISTER"},
		{"expired", gatewayToken(t, func(t *gatewaytoken.Token) { t.Issued, t.Expires = now.Add(-time.Hour), now }), "c", key, "expired"},
	} {
		steps, _ := Explain(tt.token, Options{JWT: true, Rules: Rules{Gateway: tt.cluster}, Now: clock}, KeyFile("jwt_key=/k", tt.key), KeySource{})
		got := firstRefusal(steps)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: refused because of %q", tt.name, got)
		}
	}
	steps, claims := Explain(gatewayToken(t, func(t *gatewaytoken.Token) { t.User, t.ActFor = "portal", "students" }),
		Options{JWT: true, Rules: gatewayRules, Now: clock}, KeyFile("jwt_key=/k", key), KeySource{})
	if got := fmt.Sprint(steps); firstRefusal(steps) != "" || claims.ActFor != "students" || !strings.Contains(got, "acts only for the members of the group students") {
		t.Errorf("a portal's token: %s", got)
	}
}
