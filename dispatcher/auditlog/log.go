// Package auditlog is the dispatcher's part of the audit log. It starts the
// auditor of each generation, and sends it the kernel's facts about
// connections. It does not write the file and has no descriptor of it: the
// parent gives the file to the auditor.
package auditlog

import (
	"sync"

	"schedrestd/dispatcher/process"
	"schedrestd/dispatcher/service"
	"schedrestd/ipc"
)

// Log starts the auditors of all generations, and passes on their questions to
// the parent.
type Log struct {
	spec    *service.Spec
	starter *process.Starter
	parent  *process.Parent

	mu      sync.Mutex // guards waiting
	waiting []*Feed    // feeds whose auditors wait for an answer about the file, in order
}

// New returns a Log that has started no auditor yet.
func New(spec *service.Spec, starter *process.Starter, parent *process.Parent) *Log {
	return &Log{spec: spec, starter: starter, parent: parent}
}

// Followed passes the parent's answer to the auditor that has waited longest
// for an answer.
func (l *Log) Followed(m *ipc.Followed) {
	l.mu.Lock()
	f := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.mu.Unlock()
	f.answer(m)
}

// askParent asks the parent for f's auditor whether the file of the audit log
// still has its name.
func (l *Log) askParent(f *Feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, f)
	l.parent.Send(new(ipc.Follow))
}
