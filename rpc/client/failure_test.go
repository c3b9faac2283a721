package client

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
)

// TestTimedOut checks that an error counts as a timeout only if the daemon was
// reached.
func TestTimedOut(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"no answer in time", newFailure(stageReceive, os.ErrDeadlineExceeded), true},
		{"nor to the probe", newFailure(stageClosed, context.DeadlineExceeded), true},
		{"not reached in time", newFailure(stageConnect, context.DeadlineExceeded), false},
		{"closed", newFailure(stageReceive, io.ErrUnexpectedEOF), false},
		{"another error", errors.New("no"), false},
		{"none", nil, false},
	}
	for _, tt := range tests {
		if got := timedOut(tt.err); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
