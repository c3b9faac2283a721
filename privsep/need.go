package privsep

import (
	"time"

	"schedrestd/errs"
)

// A keeper runs while there is something to keep: certificates for as long as the gateway runs, the key
// of tokens from when it is there until it is named no more.

// need says whether there is something to keep. One that has nothing to keep is let go.
func (k *keeper) need(yes bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.needed = yes
	if yes {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	} else if k.process != nil {
		k.process.Channel.Close()
	}
}

// forget has no keeper know the key of tokens any more: nothing makes a process forget as surely as its end.
func (k *keeper) forget(needed bool) {
	k.mu.Lock()
	k.needed = needed
	process := k.process
	k.mu.Unlock()
	if process != nil {
		k.end(process, "it is to know the key of tokens no more", nil)
	}
}

// rouse waits until there is a keeper that can be offered something.
func (k *keeper) rouse() error {
	if k.missing != nil {
		return k.missing
	}
	k.need(true)
	late := time.After(k.config.StartLimit)
	for {
		k.mu.Lock()
		ready, more := k.ready, k.more
		k.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-more:
		case <-k.quit:
			return errNoKeeper
		case <-late:
			return errNoKeeper
		}
	}
}

var errNoKeeper = errs.New(errs.Unavailable, "there is no keeper at this moment")

// isReady tells whether there is a keeper that can be offered something.
func (k *keeper) isReady() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ready
}

// isNeeded waits until there is something to keep. It reports false when the gateway stops.
func (k *keeper) isNeeded() bool {
	for {
		k.mu.Lock()
		needed := k.needed
		k.mu.Unlock()
		if needed {
			return !k.isStopped()
		}
		select {
		case <-k.wake:
		case <-k.quit:
			return false
		}
	}
}
