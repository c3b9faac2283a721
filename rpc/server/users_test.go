package server

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"schedrestd/become"
	"schedrestd/errs"
)

func TestUserCount(t *testing.T) {
	own := func(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }
	u := &userCount{most: 5, each: 2, super: own, held: map[uint32]int{}}
	stranger := uint32(os.Geteuid()) + 4242
	c := &conn{local: true, peer: become.Ucred{UID: stranger}}
	for i, want := range []bool{true, true, false} {
		if got := u.take(stranger); got != want {
			t.Errorf("connection %d: %t", i, got)
		}
	}
	if !u.take(stranger+1) || !u.take(0) || !u.take(uint32(os.Geteuid())) {
		t.Error("one user's connections count against others")
	}
	u.give(c)
	if !u.take(stranger) {
		t.Error("a closed connection still counts")
	}
	u.give(c)
	u.give(c)
	u.give(&conn{}) // on TCP: was never counted
	if len(u.held) != 1 {
		t.Errorf("left over: %v", u.held)
	}
}

// Users who fill all connections together keep no administrator out.
func TestConnectionsAreKeptForSupers(t *testing.T) {
	u := &userCount{most: 4, each: 2, super: func(uid uint32) bool { return uid < 10 }, held: map[uint32]int{}}
	taken := 0
	for uid := uint32(100); uid < 110; uid++ {
		for range 3 {
			if u.take(uid) {
				taken++
			}
		}
	}
	if taken != 4 || !u.take(9) {
		t.Errorf("%d of 4 connections taken, and one of a super's: %t", taken, u.take(9))
	}
}

func TestBudget(t *testing.T) {
	b := &budget{most: 100, each: 40, super: func(uid uint32) bool { return uid == 0 }, held: map[uint32]int{}}
	give, err := b.take(1, 30)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		uid  uint32
		n    int
		want bool
	}{{1, 20, false}, {1, 10, true}, {2, 40, true}, {3, 30, false}, {3, 20, true}, {0, 1 << 30, true}} {
		if _, err := b.take(tt.uid, tt.n); (err == nil) != tt.want || err != nil && errs.KindOf(err) != errs.TooMany {
			t.Errorf("%d bytes of uid %d: %v", tt.n, tt.uid, err)
		}
	}
	give()
	if b.total != 70 || b.held[1] != 10 {
		t.Errorf("%d bytes, %d of one user, after some were given back", b.total, b.held[1])
	}
}

// A stranger costs a line each time he comes, for some times.
func TestLogIsThrottled(t *testing.T) {
	var log buffer
	s := &Server{Log: slog.New(slog.NewTextHandler(&log, nil))}
	for range 1000 {
		s.say(slog.LevelInfo, "connection ended")
		s.say(slog.LevelDebug, "not shown and not counted")
	}
	if n := strings.Count(log.String(), "\n"); n != throttleLines {
		t.Errorf("%d lines", n)
	}
	if ok, dropped := s.talk.pass(time.Now().Add(throttlePeriod)); !ok || dropped != 1000-throttleLines {
		t.Errorf("later: %t, %d left out", ok, dropped)
	}
}

// A name may be a token that was sent in the wrong place.
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
