package auth

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSeen checks that a token gets the same result the second time, whether or
// not it is remembered, and that its dates count each time.
func TestSeen(t *testing.T) {
	long := strings.Repeat("k", maxSeenKeyID+1)
	for _, tt := range []struct {
		name, token string
		remembered  bool
	}{
		{"the usual", sign(goodHeader, goodClaims), true},
		{"a kid", sign(`{"alg":"HS256","kid":"a"}`, goodClaims), true},
		{"a uid", sign(goodHeader, claim(`"sun":"alice","id":{"name":"alice","uid":7,"gid":7}`)), true},
		{"not valid yet", sign(goodHeader, claim(`"nbf":1700000900,"sun":"alice"`)), false},
		{"a long kid", sign(`{"alg":"HS256","kid":"`+long+`"}`, goodClaims), false},
		{"no user", sign(goodHeader, `{"iat":1700000000,"exp":1700001800}`), false},
		{"no token", "x.y.z", false},
		{"too long", strings.Repeat("x", maxToken+1), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opt := Options{Seen: new(Seen), Rules: Rules{ClientIDs: true}}
			for _, later := range []time.Duration{0, 0, 1000 * time.Second, 1900 * time.Second} {
				opt.Now = func() time.Time { return now.Add(later) }
				plain := opt
				plain.Seen = nil
				claims, proven, err := inspect(tt.token, opt)
				wantClaims, wantProof, wantErr := inspect(tt.token, plain)
				if fmt.Sprint(err) != fmt.Sprint(wantErr) || !cmp.Equal(claims, wantClaims) || !cmp.Equal(proven, wantProof, cmp.AllowUnexported(proof{})) {
					t.Errorf("after %v: %+v %+v %v, without Seen %+v %+v %v", later, claims, proven, err, wantClaims, wantProof, wantErr)
				}
				if _, ok := opt.Seen.get(hashOf(tt.token)); later == 0 && ok != tt.remembered {
					t.Errorf("remembered: %v", ok)
				}
			}
		})
	}
}

// TestSeenIsBounded checks that clients that send ever new tokens can't fill the
// memory.
func TestSeenIsBounded(t *testing.T) {
	var s Seen
	for i := range 3 * maxSeen {
		s.add(hashOf(fmt.Sprint(i)), Claims{User: "alice"})
		if len(s.claims) > maxSeen {
			t.Fatalf("%d tokens", len(s.claims))
		}
	}
	if c, ok := s.get(hashOf(fmt.Sprint(3*maxSeen - 1))); !ok || c.User != "alice" {
		t.Errorf("the last token: %+v %v", c, ok)
	}
}
