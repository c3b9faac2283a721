package spawn

import (
	"os"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// A PID namespace ends with its first process, whatever else is in it, and
// making another one takes CAP_SYS_ADMIN, which the parent has dropped by the
// time it serves. So a few are made at the start, each with a spawner and an
// anchor of its own, and the next one is used when one has ended. Where each
// process has a PID namespace of its own there is nothing to prepare.

// SpareNamespaces is how many are prepared. An anchor takes about 2 MB.
const SpareNamespaces = 2

// Prepare makes n spawners that may have to take over from s, or fewer: the
// kernel bounds the number of namespaces. Processes must be as confined by them
// as they are by s.
func (s *Spawner) Prepare(n int) {
	if s.Anchor == nil || s.OneClient {
		return
	}
	for last := s; n > 0; n-- {
		next, err := New(s.Options)
		if err == nil && !next.layers.coversAll(s.layers) {
			err = errs.New(errs.Unsupported, "its processes would be less confined: %v", next.layers.list(ipc.PartMissing))
		}
		if err != nil {
			s.Log.Warn("namespace not prepared", "error", err, "hint", "the gateway ends when the last one that it has ends")
			if next != nil {
				next.Stop()
			}
			return
		}
		next.number = s.number
		last.next, last = next, next
	}
}

// InUse returns the spawner that starts processes now: the first whose PID
// namespace is there, or the last one when none is.
func (s *Spawner) InUse() *Spawner {
	for s.Anchor.IsLost() && s.next != nil {
		s = s.next
	}
	return s
}

// left returns how many may still take over from s.
func (s *Spawner) left() (n int) {
	for next := s.next; next != nil; next = next.next {
		if !next.Anchor.IsLost() {
			n++
		}
	}
	return n
}

// Among returns signals, and among them the loss of the last anchor. The loss
// of any other one is logged: the workers and the keeper died with it, and are
// started again as after any death.
func (s *Spawner) Among(signals <-chan os.Signal) <-chan os.Signal {
	if s.Anchor == nil {
		return signals
	}
	both := make(chan os.Signal, cap(signals)+1)
	go func() {
		at := s
		over := at.Anchor.over
		for {
			select {
			case signal := <-signals:
				both <- signal
			case <-over:
				switch next := at.InUse(); {
				case !at.Anchor.IsLost(): // it was let
					over = nil
				case next.Anchor.IsLost():
					over = nil
					s.Log.Error("namespace init exited", "pid", at.Anchor.pid, "prepared_namespaces", 0, "hint", lossHint)
					both <- Loss{}
				default:
					left := next.left()
					s.Log.Error("namespace init exited", "pid", at.Anchor.pid, "prepared_namespaces", left,
						"hint", successionHint)
					at, over = next, next.Anchor.over
				}
			}
		}
	}()
	return both
}

// What an administrator can do about the loss of an anchor.
const (
	successionHint = "workers and keeper are started in a prepared namespace; find out what kills processes called schedrestd-anch"
	lossHint       = "the gateway ends: only a new start can make namespaces; find out what kills processes called schedrestd-anch"
)
