package proxy

import (
	"net/netip"
	"testing"

	"schedrestd/gateway/worker/conntest"
	"schedrestd/ipc/work"
)

var testAdmission = work.Admission{
	Proxies:   []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8:f::/48")},
	Exempt:    []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")},
	ProxyUIDs: []uint32{13},
}

// TestForwardedFor checks that the client of a trusted proxy is the last
// address in X-Forwarded-For that does not belong to a proxy. If the request
// does not come from a trusted proxy, the header must be ignored.
func TestForwardedFor(t *testing.T) {
	o := Proxies{testAdmission}
	for _, tt := range []struct {
		name, addr string
		forwarded  []string
		want       string
	}{
		{"one", "192.0.2.1:5", []string{"203.0.113.9"}, "203.0.113.9"},
		{"the client wrote one too", "192.0.2.1:5", []string{"10.0.0.1, 203.0.113.9"}, "203.0.113.9"},
		{"two proxies", "192.0.2.1:5", []string{"10.0.0.1, 203.0.113.9, 192.0.2.77"}, "203.0.113.9"},
		{"two lines", "192.0.2.1:5", []string{"10.0.0.1", "203.0.113.9"}, "203.0.113.9"},
		{"of IPv6", "[2001:db8:f::1]:5", []string{"2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2::"},
		{"with a port", "192.0.2.1:5", []string{"[2001:db8:1:2::9]:443"}, "2001:db8:1:2::"},
		{"mapped", "[::ffff:192.0.2.1]:5", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"through a UNIX socket", "uid 13", []string{"203.0.113.9"}, "203.0.113.9"},
		{"another user through it", "uid 1000", []string{"203.0.113.9"}, ""},
		{"a client", "203.0.113.1:5", []string{"10.0.0.1"}, ""},
		{"nothing", "192.0.2.1:5", nil, ""},
		{"garbage", "192.0.2.1:5", []string{"203.0.113.9, unknown"}, ""},
		{"empty", "192.0.2.1:5", []string{""}, ""},
		{"only proxies", "192.0.2.1:5", []string{"192.0.2.3, 192.0.2.2"}, ""},
		{"an exempt one", "192.0.2.1:5", []string{"198.51.100.7"}, ""},
	} {
		got := o.Source(conntest.RequestFrom(tt.addr, tt.forwarded...))
		if got.IsValid() != (tt.want != "") || got.IsValid() && got.String() != tt.want {
			t.Errorf("%s: %s, want %q", tt.name, got, tt.want)
		}
	}
}
