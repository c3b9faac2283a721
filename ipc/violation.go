package ipc

import "fmt"

// Violation is the error for a message that breaks the protocol. If Receive
// returns a Violation, the peer is at fault and must be killed. If Send returns
// a Violation, the caller has a bug.
type Violation struct {
	From   Role
	Kind   Kind // 0 when the frame had no kind
	Reason string
}

// Error describes the violation. The description may contain numbers from the
// message, but no text.
func (v *Violation) Error() string {
	if v.Kind == 0 {
		return fmt.Sprintf("a message of the %s %s", v.From, v.Reason)
	}
	return fmt.Sprintf("%s of the %s %s", v.Kind, v.From, v.Reason)
}

// Unhandled returns an error for a message that the protocol table permits but
// the receiver does not handle. The receiver kills the peer, as for a
// Violation. If the receiver instead ignored the message, the descriptors in
// the message would leak, and the peer would assume that the message was
// handled.
func Unhandled(m Message) error {
	return fmt.Errorf("%s is permitted, but not handled here", KindOf(m))
}

func violation(from Role, kind Kind, format string, args ...any) error {
	return &Violation{From: from, Kind: kind, Reason: fmt.Errorf(format, args...).Error()}
}
