package security

import "testing"

// TestSandboxString checks that String names the active layers of the sandbox.
func TestSandboxString(t *testing.T) {
	for _, tt := range []struct {
		s    Sandbox
		want string
	}{
		{Sandbox{}, "nothing"},
		{Sandbox{Filter: true}, "seccomp, no Landlock"},
		{Sandbox{Landlock: 1, Denies: DeniesFiles}, "Landlock 1 (files)"},
		{Sandbox{Filter: true, Audit: true, Landlock: 4, Denies: DeniesFiles | DeniesTCP}, "seccomp in audit, Landlock 4 (files, TCP)"},
		{Sandbox{Filter: true, Landlock: 7, Denies: DeniesFiles | DeniesTCP | DeniesDevices | DeniesAbstract | DeniesSignals},
			"seccomp, Landlock 7 (files, TCP, devices, abstract UNIX sockets, signals)"},
	} {
		if got := tt.s.String(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.s, got, tt.want)
		}
	}
}
