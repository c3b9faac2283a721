package site

import (
	"net/netip"
	"strings"
	"testing"
)

// TestLoopback checks that the configurations of the demo name only addresses of
// the loopback interface: the daemons listen on these.
func TestLoopback(t *testing.T) {
	s := Site{Dir: t.TempDir(), Node: "head", Owner: "alice", Controller: 6817, Accounting: 6819}
	hosts := 0
	for line := range strings.Lines(s.clusterText() + s.dbdText()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !strings.HasSuffix(name, "Host") {
			continue
		}
		hosts++
		address := strings.TrimSuffix(value[strings.Index(value, "(")+1:], ")")
		if a, err := netip.ParseAddr(address); err != nil || !a.IsLoopback() {
			t.Errorf("%s: %v", line, err)
		}
	}
	if hosts != 3 {
		t.Errorf("%d hosts, want 3", hosts)
	}
}
