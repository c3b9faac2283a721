package pool

import (
	"testing"
	"time"

	"schedrestd/ipc/work"
)

// TestGoneCaller checks that a worker is not replaced because of a client that
// has left during a change that waits for the accounting daemon. The test's pool
// lets no connection give up its slot, so the slot is lent to others.
func TestGoneCaller(t *testing.T) {
	for _, tt := range []struct {
		name     string
		stage    work.Stage
		gone     time.Duration
		replaced bool
	}{
		{"during a change", work.Calling, 2 * time.Hour, false},
		{"during a change, longer than a transaction may take", work.Calling, 5 * time.Hour, true},
		{"during another request", work.Answering, 2 * time.Hour, true},
		{"a moment ago", work.Idle, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newTestPool(t, func(p *testPool) {
				p.Workers = 1
				p.Setup.Limits.Accounting = time.Hour
			})
			w := p.next()
			must(t, <-p.started)
			p.connect()
			id, _ := p.takeConn(w)
			p.sync(func() {
				c := p.workers[w.Number].held[id]
				p.Slots.Progress(&c.Conn, tt.stage)
				c.goneSince = time.Now().Add(-tt.gone)
				p.checkGone()
				if got := p.workers[w.Number].replaced; got != tt.replaced {
					t.Errorf("replaced: %v", got)
				}
			})
		})
	}
}
