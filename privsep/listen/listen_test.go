package listen

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// TestUnspecifiedAddress checks on which loopback addresses a client reaches a
// listener that is bound to an unspecified address.
func TestUnspecifiedAddress(t *testing.T) {
	if l, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		t.Skip(err)
	} else {
		l.Close()
	}
	for _, tt := range []struct {
		address string
		four    bool // reachable over IPv4
		six     bool
	}{
		{"0.0.0.0:0", true, false},
		{"[::]:0", true, true}, // also what ":0" means
		{"127.0.0.1:0", true, false},
		{"[::1]:0", false, true},
	} {
		t.Run(tt.address, func(t *testing.T) {
			list, err := Open(Options{Addresses: []ipc.Listen{{Text: tt.address, Network: ipc.TCP, Addresses: []netip.AddrPort{netip.MustParseAddrPort(tt.address)}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer CloseAll(list)
			_, port, err := net.SplitHostPort(list[0].Name)
			if err != nil {
				t.Fatal(err)
			}
			for host, want := range map[string]bool{"127.0.0.1": tt.four, "::1": tt.six} {
				c, err := net.Dial("tcp", net.JoinHostPort(host, port))
				if err == nil {
					c.Close()
				}
				if (err == nil) != want {
					t.Errorf("%s: %v, want success: %t", host, err, want)
				}
			}
		})
	}
}

// TestExplainBind checks the hints of errors at the start.
func TestExplainBind(t *testing.T) {
	for _, tt := range []struct {
		err  error
		hint string
	}{
		{unix.EADDRINUSE, "another program listens there"},
		{unix.EACCES, "ports below 1024 need root"},
		{unix.EPERM, "add SocketBindAllow=tcp:PORT"},
		{unix.EADDRNOTAVAIL, "there is no such address: ip addr shows"},
	} {
		err := explainBind(tt.err, "127.0.0.1:80", nil)
		if hint := errs.HintOf(err); !strings.Contains(hint, tt.hint) || !strings.Contains(err.Error(), "127.0.0.1:80") {
			t.Errorf("%s: %v, hint %q", strconv.Quote(tt.err.Error()), err, hint)
		}
	}
}
