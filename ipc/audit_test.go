package ipc

import (
	"strings"
	"testing"
)

// TestCutFits: whatever a client names its things, what is said of them fits the book to the last byte.
func TestCutFits(t *testing.T) {
	long := strings.Repeat("é", 70_000)
	for _, m := range []Message{
		(&Intent{Request: long, Forwarded: long, User: long, ActAs: long, Method: long, Route: long, Object: long}).Cut(),
		(&Outcome{Code: long, Result: long}).Cut(),
	} {
		frame, err := encode(m)
		if err != nil {
			t.Fatalf("%s: %v", m.Kind(), err)
		}
		if row, _ := rowOf(m.Kind()); len(frame)-1 != row.Max {
			t.Errorf("the longest %s has %d bytes, the book says %d", row.Name, len(frame)-1, row.Max)
		}
	}
}
