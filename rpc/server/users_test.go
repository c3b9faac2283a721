package server

import (
	"strings"
	"testing"
	"time"

	"schedrestd/errs"
)

func TestBudget(t *testing.T) {
	b := &budget{maxTotal: 100, maxPerUser: 40, super: func(uid uint32) bool { return uid == 0 }, perUser: map[uint32]int{}}
	release, err := b.reserve(1, 30)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		uid  uint32
		n    int
		want bool
	}{{1, 20, false}, {1, 10, true}, {2, 40, true}, {3, 30, false}, {3, 20, true}, {0, 1 << 30, true}} {
		if _, err := b.reserve(tt.uid, tt.n); (err == nil) != tt.want || err != nil && errs.KindOf(err) != errs.TooMany {
			t.Errorf("%d bytes of uid %d: %v", tt.n, tt.uid, err)
		}
	}
	release()
	if b.total != 70 || b.perUser[1] != 10 {
		t.Errorf("%d bytes, %d of one user, after some were given back", b.total, b.perUser[1])
	}
}

// TestNoTokenInTheLog checks that a token that was sent as a user name is not
// logged.
func TestNoTokenInTheLog(t *testing.T) {
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJhbm4ifQ.c2lnbmF0dXJlLXRoYXQtaXMtZ29vZA"
	a := Authority{
		Token: func(user string) (string, time.Time, error) { return user, time.Time{}, nil },
		Lookup: func(name string) (uint32, uint32, error) {
			if name == "ann" || name == "root" {
				return uint32(len(name)), 1, nil
			}
			return 0, 0, errs.New(errs.NotFound, "no user %q", name)
		},
		Super: func(uid uint32) bool { return uid == 4 },
	}
	for _, tt := range [][2]string{{jwt, ""}, {"ann", jwt}, {"root", jwt}, {"root", jwt[3:]}, {"root", strings.Repeat(jwt, 20)}} {
		_, err := a.Verify(tt[0], tt[1])
		if err == nil || strings.Contains(err.Error(), "c2lnbm") || strings.Contains(err.Error(), jwt[3:]) {
			t.Errorf("%v", err)
		}
	}
	if _, err := a.Verify("ann", "bob"); err == nil || !strings.Contains(err.Error(), `"ann" may not act for "bob"`) {
		t.Errorf("%v", err)
	}
}
