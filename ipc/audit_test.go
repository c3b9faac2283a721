package ipc_test

import (
	"strings"
	"testing"

	"schedrestd/internal/keystate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// TestCutFits checks that an Intent or Outcome with very long texts from the
// client is truncated to exactly the maximum length in the protocol table.
func TestCutFits(t *testing.T) {
	long := strings.Repeat("é", 70_000)
	for _, m := range []ipc.Message{
		(&query.Intent{Request: long, Forwarded: long, User: long, Token: long, ActAs: long, Method: long, Route: long, Object: long, Fields: long, Key: make([]query.Key, 1)}).Truncate(),
		(&query.Outcome{Code: long, Result: long, Answer: make([]byte, keystate.MaxAnswer)}).Truncate(),
	} {
		frame, err := ipc.Encode(m)
		if err != nil {
			t.Fatalf("%s: %v", ipc.RowOf(m).Name, err)
		}
		if row := ipc.RowOf(m); len(frame)-1 != row.Max {
			t.Errorf("the longest %s has %d bytes, the protocol table says %d", row.Name, len(frame)-1, row.Max)
		}
	}
}
