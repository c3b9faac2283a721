package ipc

import "fmt"

// Violation is a breach of the book. Whoever gets one from a peer ends the peer;
// whoever gets one from its own Send has a fault of its own.
type Violation struct {
	From Role
	Kind Kind // 0 when the frame had none
	Why  string
}

// Error is the breach in words of our own: nothing in it was chosen by the peer.
func (v *Violation) Error() string {
	if v.Kind == 0 {
		return fmt.Sprintf("a message of the %s %s", v.From, v.Why)
	}
	return fmt.Sprintf("%s of the %s %s", v.Kind, v.From, v.Why)
}

func violation(from Role, kind Kind, format string, args ...any) error {
	return &Violation{From: from, Kind: kind, Why: fmt.Errorf(format, args...).Error()}
}
