package security

import "testing"

// TestSealed: people see the existing layers, and the line for the parent has
// all of them.
func TestSealed(t *testing.T) {
	for _, tt := range []struct {
		s    Sealed
		want string
	}{
		{Sealed{}, "nothing"},
		{Sealed{Filter: true}, "seccomp, no Landlock"},
		{Sealed{Landlock: 1, Denies: DeniesFiles}, "Landlock 1 (files)"},
		{Sealed{Filter: true, Audit: true, Landlock: 4, Denies: DeniesFiles | DeniesTCP}, "seccomp in audit, Landlock 4 (files, TCP)"},
		{Sealed{Filter: true, Landlock: 7, Denies: DeniesFiles | DeniesTCP | DeniesDevices | DeniesAbstract | DeniesSignals},
			"seccomp, Landlock 7 (files, TCP, devices, abstract UNIX sockets, signals)"},
	} {
		if got := tt.s.String(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.s, got, tt.want)
		}
		if got, ok := ReadSealed(tt.s.Line()); !ok || got != tt.s {
			t.Errorf("%q is read as %+v, %t", tt.s.Line(), got, ok)
		}
	}
	good := Sealed{Filter: true}.Line()
	for _, bad := range []string{"", "nothing", " " + good, good + " ", good + "0", good[:len(good)-1] + "256", good[:len(good)-1] + "00"} {
		if s, ok := ReadSealed(bad); ok {
			t.Errorf("%q is read as %+v", bad, s)
		}
	}
}
