package privsep

import (
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/privsep/auditlog"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/spawn"
)

// TestAnswerAfterDispatcher checks that the answer to a question about the
// audit log is sent to the dispatcher that asked, and never to a dispatcher
// that has replaced it. A new dispatcher has not asked. Sending it the answer
// would be a protocol error, and the parent would kill the new dispatcher.
func TestAnswerAfterDispatcher(t *testing.T) {
	t.Parallel()
	for name, replaced := range map[string]bool{"the same dispatcher": false, "the next dispatcher": true} {
		t.Run(name, func(t *testing.T) {
			m := newMonitor(testConfig{}.config(), identity.Service{})
			var err error
			m.auditLog, err = auditlog.Open(auditlog.Options{Audit: ipc.Audit{Path: ipc.AuditStderr}})
			must(t, err)
			start := func() *dispatcherProcess {
				channel, peerFD, err := ipc.Pair(ipc.Parent, ipc.Dispatcher)
				must(t, err)
				t.Cleanup(func() { channel.Close(); unix.Close(peerFD) })
				return &dispatcherProcess{Child: &spawn.Child{Process: new(spawn.Process), Channel: channel}}
			}
			asking := start()
			m.dispatcher = asking
			must(t, m.handle(asking, new(ipc.Follow)))
			if replaced {
				m.dispatcher = start()
			}
			(<-m.events)()
			// Neither dispatcher is in a phase in which it may receive the
			// answer, a Followed. So the parent kills the dispatcher to which
			// it tries to send the answer, and the reason is in ending.
			if reason := m.dispatcher.killReason.Load(); (reason == nil) != replaced {
				t.Errorf("killed because: %v", reason)
			}
			if m.pendingFollows != 0 {
				t.Errorf("%d questions are open", m.pendingFollows)
			}
		})
	}
}
