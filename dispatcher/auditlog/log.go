// Package auditlog connects the dispatcher to the audit log. It starts the
// auditor of each generation, and sends it the kernel's facts about
// connections. It can't write to the log's file: the parent gives the file only
// to the auditor.
package auditlog

import (
	"sync"

	"schedrestd/dispatcher/process"
	"schedrestd/dispatcher/service"
	"schedrestd/ipc"
)

// A Log starts the auditors of all generations, and passes the auditors'
// questions on to the parent.
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

// Followed passes an answer of the parent to the auditor that has waited
// longest for one.
func (l *Log) Followed(m *ipc.Followed) {
	l.mu.Lock()
	f := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.mu.Unlock()
	f.answer(m)
}

// askParent asks the parent, for the auditor of f, whether the log's path still
// leads to the same file.
func (l *Log) askParent(f *Feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, f)
	l.parent.Send(new(ipc.Follow))
}
