package ipc

import "fmt"

// Violation is a message that breaks the protocol. If Receive returns it, the
// peer is at fault and must be killed. If Send returns it, the caller has a
// bug.
type Violation struct {
	From   Role
	Kind   Kind // 0 when the frame had no kind
	Reason string
}

// Error describes the violation. The text contains nothing that the peer sent.
func (v *Violation) Error() string {
	if v.Kind == 0 {
		return fmt.Sprintf("a message of the %s %s", v.From, v.Reason)
	}
	return fmt.Sprintf("%s of the %s %s", v.Kind, v.From, v.Reason)
}

// Unhandled returns an error for a message that the protocol table permits but
// the receiver does not handle. The receiver kills the peer, as for a
// Violation. Ignoring the message would leak its descriptors, and the peer
// would assume that it was handled.
func Unhandled(m Message) error {
	return fmt.Errorf("%s is permitted, but not handled here", KindOf(m))
}

func violation(from Role, kind Kind, format string, args ...any) error {
	return &Violation{From: from, Kind: kind, Reason: fmt.Errorf(format, args...).Error()}
}
