package privsep

import (
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/privsep/auditlog"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/spawn"
)

// TestAnswerAfterDispatcher checks that only the dispatcher that asked a
// question about the audit log gets the answer. If that dispatcher has been
// replaced, the new one must not get the answer. It has not asked, so the
// message would be a protocol error.
func TestAnswerAfterDispatcher(t *testing.T) {
	t.Parallel()
	for name, replaced := range map[string]bool{"the same dispatcher": false, "the next dispatcher": true} {
		t.Run(name, func(t *testing.T) {
			m := newMonitor(completeConfig(work.Setup{}), identity.Service{})
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
			must(t, m.handle(asking, new(ipc.CheckLogFile)))
			if replaced {
				m.dispatcher = start()
			}
			(<-m.events)()
			// The answer is an ipc.LogFileResult message, which neither
			// dispatcher may receive in its current phase. So if the parent
			// tries to send the answer to a dispatcher, the parent kills that
			// dispatcher, and killReason is set.
			if reason := m.dispatcher.killReason.Load(); (reason == nil) != replaced {
				t.Errorf("killed because: %v", reason)
			}
			if m.pendingLogChecks != 0 {
				t.Errorf("%d questions are open", m.pendingLogChecks)
			}
		})
	}
}

// TestKeysOfNextGeneration checks that a change of a key file requests one
// generation, however long it takes to open the files and to start the workers.
// Meanwhile, the stamp may be that of files that a new configuration names.
func TestKeysOfNextGeneration(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*monitor){
		"a change":                              func(*monitor) {},
		"a change whose files are being opened": func(m *monitor) { m.openingGeneration = true },
		"a generation that is being built":      func(m *monitor) { m.nextGeneration = new(generation) },
	} {
		m := newMonitor(completeConfig(work.Setup{}), identity.Service{})
		m.current.Load().id, m.lastKeyStamp = 1, "of other files"
		prepare(m)
		m.checkKeyFiles()
		if requested := m.pendingCause == causeKeys; requested != (name == "a change") {
			t.Errorf("%s: a generation is requested: %t", name, requested)
		}
	}
}
