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

// Unheard is for who gets a message that the book permits and that nobody hears there. He ends the peer as for a
// Violation: dropped, it would leave its descriptors open, and the peer in the belief that it was heard.
func Unheard(m Message) error {
	return fmt.Errorf("%s is in the book, and nobody hears it here", KindOf(m))
}

func violation(from Role, kind Kind, format string, args ...any) error {
	return &Violation{From: from, Kind: kind, Why: fmt.Errorf(format, args...).Error()}
}
