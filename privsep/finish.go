package privsep

import (
	"os"
	"time"

	"schedrestd/errs"
	"schedrestd/privsep/spawn"
)

// finish lets all workers finish the requests in progress, unless a second
// signal comes.
func (m parent) finish(first os.Signal, signals <-chan os.Signal, c Config) error {
	m.Do(m.Close)
	// A compromised worker may ignore its own limit.
	late := m.After(c.Setup.Limits.Drain+spawn.LastWords, func() { m.End("it did not end in time") })
	defer late.Stop()
	// A terminal and some supervisors send the same signal twice at once, to
	// the process and to its group. That counts as one request.
	same := time.Now().Add(sameSignal)
	for {
		select {
		case <-m.Over:
			c.Log.Info("stopped")
			return nil
		case s := <-signals:
			if s == hangUp || s == first && time.Now().Before(same) {
				continue
			}
			m.Do(func() { m.End("a second signal came") })
			<-m.Over
			return errs.New(errs.Unavailable, "stopped by a second signal (%s) before all was answered", s)
		}
	}
}

// sameSignal is the time within which two signals of a kind count as one.
const sameSignal = 500 * time.Millisecond
