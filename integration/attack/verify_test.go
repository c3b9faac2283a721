package attack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"schedrestd/auth"
	"schedrestd/integration/harness"
)

// TestVerifiers checks all tokens of TestAttacks in this process: with the
// daemons' verifier, and with that of each kind of gateway. TestAttacks sends a
// token to only one of its gateways.
func TestVerifiers(t *testing.T) {
	secret := []byte("a secret that is as long as it has to be")
	f := newForger(t, secret, "alice")
	f.trapURL = "http://127.0.0.1:1"
	key, err := auth.NewKey(secret)
	harness.Must(t, err)
	set, err := auth.ParseKeySet([]byte(f.keySet()))
	harness.Must(t, err)
	hs256 := func(_ context.Context, s auth.Signature) auth.Answer { // as the keeper does
		m := hmac.New(sha256.New, secret)
		m.Write([]byte(s.Signed))
		if hmac.Equal(m.Sum(nil), s.Bytes) {
			return auth.Good
		}
		return auth.Bad
	}
	rs256 := func(_ context.Context, s auth.Signature) auth.Answer { return set.Answer(s) }
	rows := f.rows()
	for _, algs := range []string{"HS256 RS256", "RS256"} {
		daemon := auth.Verifier{Keys: func() *auth.KeySet { return set }}
		if strings.Contains(algs, "HS256") {
			daemon.Key = key
		}
		gateways := map[string]*auth.Authenticator{"no key": {}, "RS256": {RS256: rs256}}
		if strings.Contains(algs, "HS256") {
			gateways["HS256"] = &auth.Authenticator{HS256: hs256}
			gateways["HS256 and RS256"] = &auth.Authenticator{HS256: hs256, RS256: rs256}
		}
		accepted := 0
		for _, r := range rows {
			good := r.accepted && strings.Contains(algs, r.signedWith)
			verify := func() error {
				claims, err := daemon.Verify(r.token)
				if err == nil && claims.User != f.user {
					err = fmt.Errorf("there is no user %q", claims.User)
				}
				return err
			}
			if err := verify(); (err == nil) != good {
				t.Errorf("%s: the daemons with %s: %v", r.name, algs, err)
			}
			if good {
				accepted++
			}
			for name, a := range gateways {
				request := httptest.NewRequest("GET", "/", nil)
				request.Header["X-Sched-User-Token"] = []string{r.token}
				c, err := auth.FromRequest(request, auth.Options{JWT: true})
				if err == nil {
					err = a.Authenticate(t.Context(), c, "schedctld", func(context.Context, string) error { return verify() })
				}
				if err == nil && c.Claims.User != f.user {
					err = verify() // the gateway has verified the signature; the daemon refuses the user
				}
				if (err == nil) != good {
					t.Errorf("%s: a gateway with %s, daemons with %s: %v", r.name, name, algs, err)
				}
			}
		}
		if accepted < 10 || len(rows) < 500 {
			t.Errorf("%d of %d tokens are accepted", accepted, len(rows))
		}
	}
}
