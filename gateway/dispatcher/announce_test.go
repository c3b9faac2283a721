package dispatcher

import (
	"testing"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestExposesTokens checks which listeners can receive tokens from other
// machines without encryption.
func TestExposesTokens(t *testing.T) {
	for name, tt := range map[string]struct {
		l    ipc.Listening
		want bool
	}{
		"every address":       {ipc.Listening{Network: ipc.TCP, Name: "[::]:6820"}, true},
		"one of a network":    {ipc.Listening{Network: ipc.TCP, Name: "192.0.2.1:6820"}, true},
		"link-local":          {ipc.Listening{Network: ipc.TCP, Name: "[fe80::1%eth0]:6820"}, true},
		"TLS":                 {ipc.Listening{Network: ipc.TCP, Name: "[::]:6821", TLS: true}, false},
		"loopback":            {ipc.Listening{Network: ipc.TCP, Name: "127.0.0.1:6820"}, false},
		"another of loopback": {ipc.Listening{Network: ipc.TCP, Name: "127.3.2.1:6820"}, false},
		"IPv6's loopback":     {ipc.Listening{Network: ipc.TCP, Name: "[::1]:6820"}, false},
		"loopback, mapped":    {ipc.Listening{Network: ipc.TCP, Name: "[::ffff:127.0.0.1]:6820"}, false},
		"a UNIX socket":       {ipc.Listening{Network: ipc.Unix, Name: "unix:/run/s"}, false},
	} {
		if got := exposesTokens(tt.l); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCheckScopes checks that an address with scopes must be that of a listener,
// except in a check, which opens none.
func TestCheckScopes(t *testing.T) {
	listeners := []ipc.Listening{{Name: "127.0.0.1:6822"}, {Name: "unix:/run/s"}, {Name: "0.0.0.0:6820"}}
	scopes := func(list ...string) (s work.Setup) { s.Scopes = list; return s }
	for entry, ok := range map[string]bool{
		"compute.read=127.0.0.1:6822": true, "compute.read=unix:/run/s": true, "compute.read=0.0.0.0:6820": true,
		"compute.read=[::]:6820": true, // this machine has no IPv6
		"compute.read=[::]:6822": false, "compute.read=127.0.0.1:6820": false, "compute.read=unix:/run/": false, "compute.read=": false,
	} {
		if err := checkScopes(scopes("compute.read=unix:/run/s", entry), listeners); (err == nil) != ok {
			t.Errorf("%s: %v", entry, err)
		}
	}
	some := scopes("compute.read=127.0.0.1:1")
	for _, unnamed := range [][]ipc.Listening{nil, {{Network: ipc.TCP}}} {
		if err := checkScopes(some, unnamed); err != nil {
			t.Errorf("a check: %v", err)
		}
	}
	if some.Inetd = true; checkScopes(some, nil) == nil {
		t.Error("inetd mode: no error")
	}
}
