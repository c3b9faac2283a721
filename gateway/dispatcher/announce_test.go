package dispatcher

import (
	"testing"

	"schedrestd/ipc"
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
