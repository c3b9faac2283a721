package process

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestCrash checks which exit statuses count as a crash.
func TestCrash(t *testing.T) {
	exited := func(status int) unix.WaitStatus { return unix.WaitStatus(status << 8) }
	for _, tt := range []struct {
		name string
		ws   unix.WaitStatus
		want bool
	}{
		{"killed by the administrator or for want of memory", unix.WaitStatus(unix.SIGKILL), false},
		{"told to end", unix.WaitStatus(unix.SIGTERM), false},
		{"done", exited(0), false},
		{"without a parent", exited(1), false},
		{"a panic", exited(2), true},
		{"a wild pointer", unix.WaitStatus(unix.SIGSEGV), true},
		{"a call that is not allowed", unix.WaitStatus(unix.SIGSYS), true},
		{"an abort", unix.WaitStatus(unix.SIGABRT), true},
	} {
		if got := isCrash(tt.ws); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
