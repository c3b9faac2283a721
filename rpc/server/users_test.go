package server

import (
	"os"
	"testing"

	"schedrestd/become"
)

func TestUserCount(t *testing.T) {
	u := &userCount{most: 2, held: map[uint32]int{}}
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
