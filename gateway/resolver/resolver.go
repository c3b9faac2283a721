// Package resolver implements the process that looks up names of users and
// groups for the workers and the dispatcher, the members of groups for the
// keeper, and the hosts of the daemons for the dispatcher. Names come from the files in /etc
// and from getent, which may ask a directory service. Workers can't open these
// files. The parent may run as root, so it should not parse the answers of a
// directory service.
//
// When the parent runs as root, the resolver has a uid that no user has. It can
// read the machine's files and use the network, because getent needs both, but
// it can't write any file. It reports a worker that has too many pending
// questions, and prevents one worker from using up all look-ups. A compromised
// resolver can report false names; docs/design/TRUST.md describes the consequences.
//
// Start with Main.
package resolver

import (
	"errors"
	"log/slog"
	"sync/atomic"

	"schedrestd/gateway/service"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// Rename gives the process its name. Call it from an init function.
func Rename() { self.Rename("schedrestd-reso") }

// Main runs the resolver and returns its exit status.
func Main() int {
	return service.Main(ipc.Resolver, confine, func(dispatcher *ipc.Channel) service.Service {
		return &resolver{dispatcher: dispatcher, names: newDirectory()}
	})
}

type resolver struct {
	dispatcher *ipc.Channel
	names      *directory
	questions  atomic.Uint64 // number of questions since the start
}

// Close does nothing, because pending look-ups have their own time limit.
func (*resolver) Close() {}

// Counters returns the resolver's counters since its start.
func (r *resolver) Counters() []any {
	return []any{"names", slog.GroupValue(
		slog.Uint64("asked", r.questions.Load()), slog.Uint64("looked_up", r.names.lookups.Load()))}
}

// Handle answers questions from the dispatcher, and begins to serve a keeper. It
// sends each answer as soon as it is known.
func (r *resolver) Handle(m ipc.Received) (handled bool, err error) {
	switch q := m.Message.(type) {
	case *work.Lookup:
		r.questions.Add(1)
		go func() { _ = r.dispatcher.Send(lookupResult(q, r.names.resolve)) }()
		return true, nil
	case *work.HostLookup:
		go func() { _ = r.dispatcher.Send(&work.HostAddresses{ID: q.ID, Addresses: r.names.addresses(q.Name)}) }()
		return true, nil
	case *ipc.KeeperChannel:
		channel, err := ipc.Open(m.FDs[0], ipc.Resolver, ipc.Keeper)
		if err == nil {
			go r.serveKeeper(channel)
		}
		return true, err
	}
	return false, nil
}

// Serve answers the questions of one worker.
func (r *resolver) Serve(c *service.Client) {
	i := r.names.inquirer()
	defer i.stop()
	c.EachMessage(func(m ipc.Message) (handled bool, err error) {
		switch q := m.(type) {
		case *work.Lookup:
			r.questions.Add(1)
			place := i.pending.Empty(i)
			if !place.Grow(1) {
				return true, errors.New("asked for too many names concurrently")
			}
			go func() {
				a := lookupResult(q, i.resolve)
				place.Release()
				c.Answer(a)
			}()
			return true, nil
		}
		return false, nil
	})
}

// lookupResult returns the answer to q.
func lookupResult(q *work.Lookup, ask func(question) (answer, error)) *work.LookupResult {
	a, err := ask(question{q.Group, q.Number, q.Name})
	return &work.LookupResult{ID: q.ID, Available: err == nil, Name: a.text, Number: a.number}
}

// confine removes all rights that getent does not need.
func confine(s ipc.ServiceSetup) (sandbox.Layers, error) {
	return sandbox.ReadOnly(s.Sandbox&ipc.SandboxRequire != 0)
}
