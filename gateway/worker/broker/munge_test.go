package broker

import (
	"testing"
	"time"

	"schedrestd/ipc/work"
)

// TestCredentialClients checks that there is a client for MUNGE or auth/slurm
// only if it is configured, and that it uses the configured socket.
func TestCredentialClients(t *testing.T) {
	b := New(nil)
	if got := b.Munge(work.Munge{}, work.UpstreamMunge, ""); got != nil {
		t.Errorf("no daemon verifies tokens, and %+v is asked", got)
	}
	if got := b.Sack(nil, 5); got != nil {
		t.Errorf("no auth/slurm, and %+v is asked", got)
	}
	if got := b.Sack([]string{"/s", "/t"}, 5); got == nil || len(got.Sockets) != 2 || !got.Trusted(1, 0) || !got.Trusted(1, 5) || got.Trusted(1, 77) {
		t.Errorf("sack.socket: %+v", got)
	}
	got := b.Munge(work.Munge{Socket: "/m", Accounting: "/other", TTL: time.Minute}, work.UpstreamAccountingMunge, "/other")
	if got == nil || got.Socket != "/other" || got.TTL != time.Minute {
		t.Errorf("munged: %+v", got)
	}
}
