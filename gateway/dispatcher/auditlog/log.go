// Package auditlog connects the dispatcher to the audit log. It starts an
// auditor for each generation, and reports to it what the kernel and the
// dispatcher know about connections. The dispatcher can't write to the log's
// file, because the parent gives the file only to the auditor.
package auditlog

import (
	"sync"

	"schedrestd/gateway/dispatcher/process"
	"schedrestd/gateway/dispatcher/service"
	"schedrestd/ipc"
)

// A Log starts the auditors of all generations, and passes the auditors'
// questions on to the parent.
type Log struct {
	spec    *service.Spec
	starter *process.Starter
	parent  *process.Parent

	mu      sync.Mutex // guards waiting
	waiting []*Feed    // feeds whose auditors have asked about the log's file, oldest question first
}

// New returns a Log that has started no auditor yet.
func New(spec *service.Spec, starter *process.Starter, parent *process.Parent) *Log {
	return &Log{spec: spec, starter: starter, parent: parent}
}

// PassAnswer passes an answer from the parent to the auditor that has waited
// longest.
func (l *Log) PassAnswer(m *ipc.LogFileResult) {
	l.mu.Lock()
	f := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.mu.Unlock()
	f.answer(m)
}

// askParent asks the parent, on behalf of f's auditor, whether the log's path
// still leads to the same file.
func (l *Log) askParent(f *Feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, f)
	l.parent.Send(new(ipc.CheckLogFile))
}
