package privsep

import (
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestRulesInForce checks that the log shows those rules of the gateway that
// can't be seen from outside, even rules that have their default value.
func TestRulesInForce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t, t.TempDir(), plainUser(t)), "audit.log")
	net := func(s string) netip.Prefix { return netip.MustParsePrefix(s) }
	for _, tt := range []struct {
		c    testConfig
		want map[string]any
	}{
		{testConfig{}, map[string]any{"audit_log": "none", "penalties": "off", "exempt": "none", "trusted_proxies": "none", "rate": "none", "scopes": "none", "token_register": "none", "netns": "own", "controller_netns": "own", "idempotency_file": "none"}},
		{testConfig{Audit: ipc.Audit{Path: path, FailOpen: true, Sync: true, Claims: path + ".keys"}, Setup: packed(work.Setup{Admission: work.Admission{
			Auth: time.Second, Malformed: 2 * time.Second, Threshold: time.Minute, Exempt: []netip.Prefix{net("10.0.0.0/8"), net("::1/128")},
			Proxies: []netip.Prefix{net("192.0.2.7/32")}, ProxyUIDs: []uint32{13}, Rate: 50, Burst: 200}})},
			map[string]any{"audit_log": path + ", open, sync", "penalties": "auth:1s,malformed:2s,crash:0s,threshold:1m0s", "exempt": "10.0.0.0/8,::1/128",
				"trusted_proxies": "192.0.2.7/32,unix:13", "rate": "50:200", "scopes": "none", "token_register": "none", "netns": "own", "controller_netns": "own", "idempotency_file": path + ".keys"}},
	} {
		g := serve(t, plainUser(t), tt.c)
		got := g.await("rules in force", nil)
		for _, name := range []string{"time", "level", "msg"} {
			delete(got, name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n := g.count("every address is") + g.count("--max-per-source has no effect"); n > 0 {
			t.Errorf("%d warnings", n)
		}
	}
}

// TestPlainHTTPBeyondLoopback checks that the log names, once, each listener on
// which tokens travel unencrypted.
func TestPlainHTTPBeyondLoopback(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Listen: listens("127.0.0.1:0", "0.0.0.0:0")})
	g.await("rules in force", nil)
	if n := g.count("listener accepts plain HTTP from other machines"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

// TestPlainHTTPBeyondLoopback checks that the log has exactly one warning about
// each listener that accepts plain HTTP from other machines.
func TestRulesThatRuleNothing(t *testing.T) {
	t.Parallel()
	everybody := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("0.0.0.0/0")}
	g := serve(t, plainUser(t), testConfig{Connections: 6, PerSource: 6, Setup: packed(work.Setup{Admission: work.Admission{Threshold: time.Second, Proxies: everybody, Exempt: everybody}})})
	g.await("every address is a trusted proxy: no client has penalties, and X-Forwarded-For of every client counts", nil)
	g.await("every address is exempt: no client has penalties", nil)
	g.await("--max-per-source has no effect: one source may have all connections", nil)
}
