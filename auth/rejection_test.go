package auth

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// rejected returns the Rejection of a request with the given headers.
func rejected(headers ...string) Rejection {
	r := &http.Request{Header: http.Header{}}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return NewRejection(r, Options{Now: clock, Rules: Rules{UserField: "uid"}})
}

// TestRejectedUser checks that the User of a Rejection is the user that the
// credential names, or "" if the credential contains no valid user name.
func TestRejectedUser(t *testing.T) {
	const token, name = "X-SCHED-USER-TOKEN", "X-SCHED-USER-NAME"
	long := make([]byte, 2000)
	for i := range long {
		long[i] = 'a'
	}
	for _, tt := range []struct {
		name    string
		headers []string
		want    string
	}{
		{"nothing", nil, ""},
		{"garbage", []string{token, "garbage"}, ""},
		{"a token", []string{token, sign(goodHeader, goodClaims)}, "alice"},
		{"an expired token", []string{token, sign(goodHeader, `{"iat":1,"exp":2,"sun":"alice"}`)}, "alice"},
		{"a token without dates", []string{token, sign(goodHeader, `{"sun":"alice"}`)}, "alice"},
		{"a Bearer token", []string{"Authorization", "Bearer " + sign(goodHeader, `{"uid":"carol"}`)}, "carol"},
		{"a token and a name", []string{token, sign(goodHeader, goodClaims), name, "bob"}, "bob by alice"},
		{"a name alone", []string{name, "bob"}, "bob"},
		{"two names", []string{name, "bob", name, "carol"}, ""},
		{"a forged line", []string{token, sign(goodHeader, `{"sun":"alice\nlevel=INFO msg=request user=root"}`)}, ""},
		{"a long name", []string{token, sign(goodHeader, `{"sun":"`+string(long)+`"}`)}, ""},
	} {
		if got := rejected(tt.headers...).User; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestRejectionHash checks that different credentials have different hashes,
// and that a repeated credential has the same hash.
func TestRejectionHash(t *testing.T) {
	const token, name = "X-SCHED-USER-TOKEN", "X-SCHED-USER-NAME"
	list := [][]string{
		nil, {token, "a"}, {token, "b"}, {token, "ab"}, {name, "a"}, {name, "a", token, "b"}, {name, "ab"},
		{name, "a", name, "b"}, {token, "a", token, "b"}, {"Authorization", "Bearer c"},
	}
	seen := map[uint64][]string{}
	for _, headers := range list {
		hash := rejected(headers...).Hash
		if other, ok := seen[hash]; ok {
			t.Errorf("%q and %q have the same hash", headers, other)
		}
		seen[hash] = headers
		if rejected(headers...).Hash != hash {
			t.Errorf("%q has two hashes", headers)
		}
	}
	if rejected(token, "a").Hash != rejected("Authorization", "Bearer a").Hash || rejected().Hash != rejected("Authorization", "Basic YTpi").Hash {
		t.Error("the same token in different headers has different hashes")
	}
}

// TestOutOfDate checks that IsOutOfDate returns true only for a token whose
// dates are its only fault, as far as this process can tell. If a key rejects
// the token's signature, IsOutOfDate must return false.
func TestOutOfDate(t *testing.T) {
	good, bad, unknown := Good, Bad, Unknown
	for _, tt := range []struct {
		name, claims string
		keyAnswer    *Answer
		want         bool
	}{
		{"expired", `{"iat":1,"exp":2,"sun":"alice"}`, &good, true},
		{"of tomorrow", `{"iat":99999999999,"exp":99999999999,"sun":"alice"}`, &good, true},
		{"forged", `{"iat":1,"exp":2,"sun":"alice"}`, &bad, false},
		{"no key can tell", `{"iat":1,"exp":2,"sun":"alice"}`, &unknown, true},
		{"no key is here", `{"iat":1,"exp":2,"sun":"alice"}`, nil, true},
		{"rejected though its dates are good", goodClaims, &good, false},
		{"no user", `{"iat":1,"exp":2}`, &good, false},
		{"no dates", `{"sun":"alice"}`, &good, false},
	} {
		a := newTestAuthenticator(tt.keyAnswer)
		r := rejected("X-SCHED-USER-TOKEN", sign(goodHeader, tt.claims))
		if got := a.IsOutOfDate(context.Background(), r); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	a := newTestAuthenticator(&good)
	c := credentialOf(t, sign(goodHeader, goodClaims), "")
	a.now = c.Claims.Expires.Add(time.Second) // the daemons would still accept the token
	r := &http.Request{Header: http.Header{"X-Sched-User-Token": {c.Token}}}
	if !a.IsOutOfDate(context.Background(), NewRejection(r, Options{Now: a.Now})) {
		t.Error("within the leeway, the token does not count as expired")
	}
}
