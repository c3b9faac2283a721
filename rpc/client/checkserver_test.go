package client

import (
	"net"
	"testing"

	"schedrestd/become"
	"schedrestd/internal/errs"
)

// A servedConn is a connection that the dispatcher has opened, with the uid of the server.
type servedConn struct {
	net.Conn
	uid   uint32
	known bool
}

func (c servedConn) Server() (uid uint32, known bool) { return c.uid, c.known }

// TestCheckServer checks whose servers get a token. If the server is on this
// machine, but the kernel does not know whose it is, it gets none.
func TestCheckServer(t *testing.T) {
	const sched = 981
	c := newCaller(Config{Trusted: func(uid uint32) bool { return uid == 0 || uid == sched }}, "controller", nil)
	for _, tt := range []struct {
		name  string
		uid   uint32
		known bool
		ok    bool
	}{
		{"root", 0, true, true},
		{"the scheduler's user", sched, true, true},
		{"another user", 1000, true, false},
		{"a user whom the kernel does not know", become.Overflow, true, false},
		{"another machine", become.NoID, false, true},
	} {
		near, far := net.Pipe()
		defer far.Close()
		defer near.Close()
		if err := c.checkServer(servedConn{near, tt.uid, tt.known}); (err == nil) != tt.ok || err != nil && errs.KindOf(err) != errs.Unavailable {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
