package client

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
)

// TestTimedOut checks that only a daemon that was reached can time out.
func TestTimedOut(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"no answer in time", failed(unanswered, os.ErrDeadlineExceeded), true},
		{"nor to the probe", failed(silent, context.DeadlineExceeded), true},
		{"not reached in time", failed(unreached, context.DeadlineExceeded), false},
		{"closed", failed(unanswered, io.ErrUnexpectedEOF), false},
		{"another error", errors.New("no"), false},
		{"none", nil, false},
	}
	for _, tt := range tests {
		if got := timedOut(tt.err); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
