// Package output implements the process that reads the output files of one
// user's jobs. It runs as this user, with the user's groups, in the machine's
// mount namespace, so the kernel decides which files it may read. Workers open
// no files.
//
// A worker asks for a part of a file by its path, and the answer has the part
// and what the kernel reports about the file. The process keeps no file open
// between two questions. So a file that was replaced shows at once, a client
// that follows many files holds nothing here, and network file systems look
// whether the file has changed.
//
// The process opens only regular files of its user, and follows links only of
// its user and of root (open.go). In its sandbox it can open files for reading
// only, start no program and make no connection.
//
// Each question has its own goroutine, so a file system that hangs delays only
// the questions about its files.
package output

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/service"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// Rename sets the name of the process. It must be called from an init function.
func Rename() { self.Rename("schedrestd-outp") }

// Main runs the process and returns its exit status.
func Main() int {
	return service.Main(ipc.Output, confine, func(*ipc.Channel) service.Service {
		return newReader(func() { os.Exit(0) }, restLimit) // the sandbox kills a process that closes its channel
	})
}

func confine(setup ipc.ServiceSetup) (sandbox.Layers, error) {
	s := setup.Sandbox
	return sandbox.Close(sandbox.Options{Kind: sandbox.Output, Audit: s&ipc.SandboxAudit != 0}, s&ipc.SandboxRequire != 0)
}

// maxPending limits the questions that are being answered. Each may hold a
// thread, for as long as a file system hangs. The worker asks fewer at once
// (limit.OutputParts).
const maxPending = 48

// restLimit is the time without a question after which the process exits. The
// dispatcher starts another one when it is needed.
const restLimit = time.Minute

// ownGroups are the supplementary groups, for which the sandbox permits no question.
var ownGroups, _ = unix.Getgroups()

type reader struct {
	rest   *time.Timer // ends the process
	groups []int       // of the process; supplementary
	warned sync.Once   // that there are none

	parts, refused atomic.Uint64
	pending        atomic.Int32
}

// newReader returns a reader that calls exit after a rest.
func newReader(exit func(), rest time.Duration) *reader {
	r := &reader{groups: ownGroups}
	r.rest = time.AfterFunc(rest, func() {
		if r.pending.Load() > 0 {
			r.rest.Reset(rest)
			return
		}
		exit()
	})
	return r
}

// Close does nothing, because the process holds nothing.
func (*reader) Close() {}

// Counters returns the number of answers since the start, and of those without
// a part.
func (r *reader) Counters() []any {
	return []any{"output", slog.GroupValue(slog.Uint64("parts", r.parts.Load()), slog.Uint64("refused", r.refused.Load()))}
}

// Handle handles no message, because the dispatcher sends only those of all
// services.
func (*reader) Handle(ipc.Received) (handled bool, err error) { return false, nil }

// Serve answers the worker of this user.
func (r *reader) Serve(c *service.Client) {
	_ = c.EachMessage(func(m ipc.Message) (handled bool, err error) {
		switch q := m.(type) {
		case *query.ReadOutput:
			r.rest.Reset(restLimit)
			r.answer(c, q)
			return true, nil
		}
		return false, nil
	})
}

// answer reads a part of a file, and does not wait for it.
func (r *reader) answer(c *service.Client, q *query.ReadOutput) {
	if r.pending.Add(1) > maxPending { // the worker no longer waits for some of them, because a file system hangs
		r.pending.Add(-1)
		c.AnswerInTurn(&query.OutputPart{ID: q.ID, State: query.OutputFailed, Errno: uint32(unix.EAGAIN)})
		return
	}
	go func() {
		defer r.pending.Add(-1) // a worker that does not read its answers gets no more
		part := read(q)
		if part.State == query.OutputDenied && len(r.groups) == 0 {
			part.State = query.OutputNoGroups
			r.warned.Do(func() {
				slog.Warn("file not read: this process has no supplementary groups", "uid", os.Getuid(), "because", fmt.Sprintf("the user has none, or more than %d", query.MaxGroups))
			})
		}
		r.parts.Add(1)
		if part.State != query.OutputRead {
			r.refused.Add(1)
		}
		c.AnswerInTurn(part)
	}()
}
