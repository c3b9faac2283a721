// Package auditlog is the dispatcher's part of the audit log. It gives the open
// file, which comes from the parent, to the auditor of each generation, and
// passes the kernel's facts about connections to the auditor. It writes no line.
package auditlog

import (
	"sync"

	"golang.org/x/sys/unix"

	"schedrestd/dispatcher/process"
	"schedrestd/dispatcher/service"
	"schedrestd/ipc"
)

// Log is the audit log while the gateway runs. A nil Log is off.
type Log struct {
	spec    *service.Spec
	starter *process.Starter
	parent  *process.Parent

	mu     sync.Mutex // guards the following
	file   *ipc.LogFD // nil: it has not come yet
	fd     int
	feeds  map[*Feed]struct{} // to the auditors that have the file
	asking []*Feed            // in order
}

// New returns the audit log, whose file comes from parent.
func New(spec *service.Spec, starter *process.Starter, parent *process.Parent) *Log {
	return &Log{spec: spec, starter: starter, parent: parent, fd: -1, feeds: map[*Feed]struct{}{}}
}

// Replace gives the file to every auditor, and to those that start later.
func (l *Log) Replace(m *ipc.LogFD, fd int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fd >= 0 {
		unix.Close(l.fd)
	}
	l.file, l.fd = m, fd
	for f := range l.feeds {
		_ = f.Channel.TrySend(m, fd)
	}
}

// Followed passes the parent's answer to the auditor that has asked first.
func (l *Log) Followed(m *ipc.Followed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.asking[0]
	l.asking = l.asking[1:]
	f.answer(m)
}

// add gives the file to one more auditor.
func (l *Log) add(f *Feed) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feeds[f] = struct{}{}
	return ipc.UnlessGone(f.Channel.Send(l.file, l.fd))
}

// look asks the parent for the auditor of f whether the file still has its name.
func (l *Log) look(f *Feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking = append(l.asking, f)
	l.parent.Send(new(ipc.Follow))
}

// remove forgets an auditor that has exited.
func (l *Log) remove(f *Feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.feeds, f)
}
