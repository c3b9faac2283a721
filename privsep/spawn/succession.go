package spawn

import (
	"schedrestd/errs"
	"schedrestd/ipc"
)

// A PID namespace ends with its first process, whatever else is in it. The spawner
// that made it can start nothing then; another one follows it. To make a PID
// namespace takes CAP_SYS_ADMIN, which the parent has dropped by the time it serves,
// so that some are prepared. When none is left, the one that follows has each process
// in a user namespace of its own, where the kernel permits that, and can't be lost.

// SpareNamespaces is how many are prepared. Each takes about 2 MB.
const SpareNamespaces = 2

// Next returns the spawner that follows s: a prepared one, or a new one. Its processes
// are as confined as those of s, or it is refused.
func (s *Spawner) Next() (*Spawner, error) {
	s.once.Do(func() {
		next, err := New(s.Options)
		if err == nil && !next.layers.coversAll(s.layers) {
			next.Stop()
			err = errs.New(errs.Unsupported, "its processes would be less confined: %v", next.layers.list(ipc.PartMissing))
		}
		if s.failed = err; err == nil {
			s.follower = next
		}
	})
	return s.follower, s.failed
}

// Prepare makes n spawners that follow s, one after the other, while this process has
// the capabilities. There may be fewer: the kernel bounds the number of namespaces.
func (s *Spawner) Prepare(n int) {
	for ; n > 0 && s.first != nil && !s.OneClient; n-- {
		next, err := s.Next()
		if err != nil {
			s.Log.Warn("namespace not prepared", "error", err, "hint", "the gateway ends when the last one that it has ends")
			return
		}
		s = next
	}
}

// InUse returns the spawner that starts processes now: the first of s and those that
// follow it whose PID namespace is there. When none is, it returns the last one.
func (s *Spawner) InUse() *Spawner {
	for s.IsLost() {
		next, err := s.Next()
		if err != nil {
			return s
		}
		s = next
	}
	return s
}

// Stop ends the thread, and with it every process that is left.
func (s *Spawner) Stop() {
	s.succession.stop()
	s.first.stop()
	s.Thread.Stop()
	s.null.Close()
	s.stage.Close()
}
