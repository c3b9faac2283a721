package plan

import (
	"net/netip"
	"strings"
	"testing"

	"schedrestd/ipc"
)

// TestCheckDistinct checks which pairs of addresses are refused.
func TestCheckDistinct(t *testing.T) {
	tcp := func(list ...string) ipc.Listen {
		l := ipc.Listen{Text: list[0], Network: ipc.TCP}
		for _, a := range list {
			l.Addresses = append(l.Addresses, netip.MustParseAddrPort(a))
		}
		return l
	}
	unix := func(path string) ipc.Listen { return ipc.Listen{Text: "unix:" + path, Network: ipc.Unix, Path: path} }
	for _, tt := range []struct {
		name  string
		a, b  ipc.Listen
		same  bool
		netns bool
	}{
		{name: "equal", a: tcp("127.0.0.1:80"), b: tcp("127.0.0.1:80"), same: true},
		{name: "other port", a: tcp("127.0.0.1:80"), b: tcp("127.0.0.1:81")},
		{name: "other address", a: tcp("127.0.0.1:80"), b: tcp("127.0.0.2:80")},
		{name: "all addresses", a: tcp("[::]:80"), b: tcp("127.0.0.1:80"), same: true},
		{name: "all IPv4 addresses", a: tcp("[::1]:80"), b: tcp("0.0.0.0:80")},
		{name: "all addresses, and all IPv4 addresses", a: tcp("0.0.0.0:80"), b: tcp("[::]:80"), same: true},
		{name: "one of two", a: tcp("[::1]:80", "127.0.0.1:80"), b: tcp("127.0.0.1:80"), same: true},
		{name: "IPv4 as IPv6", a: tcp("[::ffff:127.0.0.1]:80"), b: tcp("127.0.0.1:80"), same: true},
		{name: "free ports", a: tcp("127.0.0.1:0"), b: tcp("127.0.0.1:0")},
		{name: "sockets", a: unix("/run/a"), b: unix("/run/b")},
		{name: "one socket", a: unix("/run/a"), b: unix("/run//a"), same: true},
		{name: "socket and port", a: unix("/run/a"), b: tcp("[::]:80")},
		{name: "another network namespace", a: tcp("127.0.0.1:80"), b: tcp("127.0.0.1:80"), netns: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBoth := checkDistinct([]ipc.Listen{tt.a}, []ipc.Listen{tt.b}, tt.netns)
			if (inBoth != nil) != tt.same || tt.same && !(strings.Contains(inBoth.Error(), tt.a.Text) && strings.Contains(inBoth.Error(), tt.b.Text)) {
				t.Errorf("for clients and for metrics: %v", inBoth)
			}
			if tt.netns {
				return
			}
			if twice := checkDistinct([]ipc.Listen{tt.b, tt.a}, nil, false); (twice != nil) != tt.same {
				t.Errorf("both for clients: %v", twice)
			}
		})
	}
}
