package auth

import (
	"context"
	"errors"
	"strings"
	"testing"

	"schedrestd/internal/errs"
)

// TestUsersAreLookedUp checks which users are refused, and that a name to act as
// is sent to no daemon before it was looked up. Only verified tokens may cause a
// look-up.
func TestUsersAreLookedUp(t *testing.T) {
	good, bad := Good, Bad
	plain := sign(goodHeader, goodClaims) // of alice
	uidOf := func(uid string) string {
		return sign(goodHeader, `{"iat":1699999999,"exp":1700000600,"uid":`+uid+`,"gid":7,"id":{"name":"alice"}}`)
	}
	accounts := map[string]uint32{"alice": 1000, "bob": 1001, "nobody": 65534, "old": 99}
	down := errs.New(errs.Unavailable, "the directory is down")
	for _, tt := range []struct {
		name, token, actAs string
		key                *Answer
		pass, down         bool
		want               errs.Kind
		reason             string
		asked, lookups     string // names, in order; "-" is the token's own user
	}{
		{name: "a user", token: plain, key: &good, lookups: "alice"},
		{name: "a user, without a key", token: plain, asked: "-", lookups: "alice"},
		{name: "another user", token: plain, actAs: "bob", key: &good, asked: "bob", lookups: "bob"},
		{name: "another user, without a key", token: plain, actAs: "bob", asked: "- bob", lookups: "bob"},
		{name: "an unknown user", token: plain, actAs: "carol", key: &good, want: errs.Unauthenticated, reason: "no user of this machine", lookups: "carol"},
		{name: "an unknown user, without a key", token: plain, actAs: "carol", want: errs.Unauthenticated, reason: "no user of this machine", asked: "-", lookups: "carol"},
		{name: "an unknown user, who is left to the daemons", token: plain, actAs: "carol", key: &good, pass: true, asked: "carol"},
		{name: "a forged token", token: plain, actAs: "carol", key: &bad, want: errs.Unauthenticated, reason: "wrong signature"},
		{name: "the user nobody", token: plain, actAs: "nobody", key: &good, want: errs.Unauthenticated, reason: "uid 65534", lookups: "nobody"},
		{name: "the uid of Slurm's unknown users", token: plain, actAs: "old", key: &good, want: errs.Unauthenticated, reason: "uid 99", lookups: "old"},
		{name: "no directory", token: plain, key: &good, down: true, want: errs.Unavailable, reason: "down", lookups: "alice"},
		{name: "the uid of the account", token: uidOf("1000"), key: &good, lookups: "alice"},
		{name: "another uid", token: uidOf("1001"), key: &good, want: errs.Unauthenticated, reason: "uid 1001, but the user has uid 1000", lookups: "alice"},
		{name: "another uid, if the daemons know the users", token: uidOf("1001"), key: &good, pass: true, want: errs.Unauthenticated, reason: "uid 1001", lookups: "alice"},
		{name: "a uid and no directory", token: uidOf("1001"), key: &good, pass: true, down: true, lookups: "alice"},
		{name: "nobody's uid", token: uidOf("65534"), key: &good, pass: true, want: errs.Unauthenticated, reason: "uid 65534 stands for unknown users"},
		{name: "the uid is for the token's own user", token: uidOf("7"), actAs: "bob", key: &good, asked: "bob", lookups: "bob"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked, lookups []string
			a := newTestAuthenticator(tt.key)
			a.PassUnknown = tt.pass
			a.UserID = func(_ context.Context, _ Credential, name string) (uint32, error) {
				lookups = append(lookups, name)
				uid, ok := accounts[name]
				switch {
				case tt.down:
					return 0, down
				case !ok:
					return 0, errs.New(errs.NotFound, "none")
				}
				return uid, nil
			}
			excused := false
			a.Excuse = func(context.Context) { excused = true }
			claims, proof, err := inspect(tt.token, Options{Now: clock, Rules: Rules{ClientIDs: true}})
			must(t, err)
			err = a.Authenticate(context.Background(), Credential{Token: tt.token, ActAs: tt.actAs, Claims: claims, proof: proof}, controller, func(_ context.Context, actAs string) error {
				if actAs == "" {
					actAs = "-"
				}
				asked = append(asked, actAs)
				return nil
			})
			reason := ""
			if e, ok := errors.AsType[*errs.Error](err); ok {
				reason = e.Error()
			}
			if (err != nil) != (tt.reason != "") || err != nil && errs.KindOf(err) != tt.want || !strings.Contains(reason, tt.reason) {
				t.Errorf("got %v", err)
			}
			if want := tt.want == errs.Unauthenticated && tt.key != &bad; excused != want {
				t.Errorf("excused: %t, want %t", excused, want)
			}
			if got := strings.Join(asked, " "); got != tt.asked {
				t.Errorf("the daemon was asked about %q, want %q", got, tt.asked)
			}
			if got := strings.Join(lookups, " "); got != tt.lookups {
				t.Errorf("looked up %q, want %q", got, tt.lookups)
			}
		})
	}
}
