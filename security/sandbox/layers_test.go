package sandbox

import "testing"

// TestLayers checks that String names the active layers of a sandbox.
func TestLayers(t *testing.T) {
	for _, tt := range []struct {
		s    Layers
		want string
	}{
		{Layers{}, "nothing"},
		{Layers{Filter: true}, "seccomp, no Landlock"},
		{Layers{Landlock: 1, Denies: DeniesFiles}, "Landlock 1 (files)"},
		{Layers{Filter: true, Audit: true, Landlock: 4, Denies: DeniesFiles | DeniesTCP}, "seccomp in audit, Landlock 4 (files, TCP)"},
		{Layers{Filter: true, Landlock: 7, Denies: DeniesFiles | DeniesTCP | DeniesDevices | DeniesAbstract | DeniesSignals},
			"seccomp, Landlock 7 (files, TCP, devices, abstract UNIX sockets, signals)"},
	} {
		if got := tt.s.String(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.s, got, tt.want)
		}
	}
}
