package spawn

import (
	"log/slog"
	"os"
)

// Loss is the end of the last PID namespace. It ends the service as a signal does.
type Loss struct{}

func (Loss) String() string { return "each PID namespace that was made for workers has ended" }
func (Loss) Signal()        {}

// WithLoss returns signals, with the loss of the last PID namespace of s and
// its followers as another signal. The loss of any other one is logged and
// reported: its workers and services have exited with it, and the next
// generation starts in the next namespace.
func WithLoss(signals <-chan os.Signal, s *Spawner, log *slog.Logger, report func()) <-chan os.Signal {
	lost := s.Lost()
	if lost == nil {
		return signals
	}
	both := make(chan os.Signal, cap(signals)+1)
	go func() {
		for {
			select {
			case signal := <-signals:
				both <- signal
			case <-lost:
				lost = nil
				if !s.IsLost() { // the parent ended it
					break
				}
				if _, err := s.Next(); err != nil {
					log.Error("namespace init exited", "error", err, "hint", "the gateway ends: only a new start can make namespaces; "+lossHint)
					both <- Loss{}
					break
				}
				s = s.InUse()
				lost = s.Lost()
				log.Error("namespace init exited", "user_namespaces", s.InUserNamespaces(),
					"hint", "workers and services are started in the next namespace; "+lossHint)
				report()
			}
		}
	}()
	return both
}

const lossHint = "find out what kills processes called schedrestd-anch"
