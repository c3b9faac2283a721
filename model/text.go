package model

// Text is a text that may be unset. The zero value, "", is unset: in a change
// it leaves a field as it is. Emptied is set, but empty: it removes the field's
// value. On the wire "unset" is a null text.
type Text string

// Emptied is a Text that is set to empty text. A C program would read these
// bytes as empty text, too, and no request may contain a NUL (see
// schema.ParseText).
const Emptied Text = "\x00"

// SetText returns a Text that is set to s, even if s is empty.
func SetText(s string) Text {
	if s == "" {
		return Emptied
	}
	return Text(s)
}

// String returns the text. It is "" for a Text that is unset.
func (t Text) String() string {
	if t == Emptied {
		return ""
	}
	return string(t)
}

// Changes reports whether a change to t would change a field with the value
// old.
func (t Text) Changes(old Text) bool { return t != "" && t.String() != old.String() }

// Empty reports whether the text is unset or set to empty text.
func (t Text) Empty() bool { return t.String() == "" }
