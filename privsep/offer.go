package privsep

import (
	"fmt"
	"os"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
)

// offer gives the keeper what has that number, and waits for its word. One thing is offered at a time.
func (k *keeper) offer(number uint32, m ipc.Message, files ...*os.File) error {
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	k.mu.Lock()
	if !k.ready {
		k.mu.Unlock()
		return errNoKeeper
	}
	process := k.process
	select {
	case <-k.kept: // one that came too late
	default:
	}
	k.offered = number
	err := process.Channel.TrySend(m, fds...)
	k.mu.Unlock()
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "give the keeper a key")
	}
	select {
	case m := <-k.kept:
		if !m.OK {
			return errs.New(errs.Invalid, "%s", spawn.Printable(m.Reason))
		}
		return nil
	case <-process.Dead:
		return errs.New(errs.Unavailable, "the keeper died when it got the key")
	case <-time.After(k.config.StartLimit):
		return errs.New(errs.Unavailable, "the keeper has not read the key within %s", k.config.StartLimit)
	}
}

// hearKept takes the answer to what was offered, and no other.
func (k *keeper) hearKept(m *ipc.Kept) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.offered == 0 || m.Number != k.offered {
		return fmt.Errorf("it said Kept of key %d, which it was not offered", m.Number)
	}
	k.offered = 0
	k.kept <- m
	return nil
}

// present has workers introduced to the keeper that runs now: it has its keys.
func (k *keeper) present() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ready {
		k.settled = k.process
	}
}

// presented is the keeper that workers are introduced to; nil while there is none.
func (k *keeper) presented() *spawn.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.settled
}
