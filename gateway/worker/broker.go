package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A Broker asks other processes to do what the worker's sandbox forbids. The
// dispatcher dials daemons, and the resolver looks up names.
type Broker struct {
	send    func(ipc.Message, ...int) error
	dialSem chan struct{} // holds one element for each pending request to the dispatcher

	audit *auditClient // asks the auditor to record changes
	pool  socketPool   // sockets for future connections

	resolver  *remoteService
	lookupSem chan struct{} // has an element for each pending look-up

	pending pending[ipc.Received]
}

// maxPending limits the pending requests to the dispatcher and, separately, the
// pending look-ups. The resolver accepts more than maxPending look-ups from a
// worker, and the channels have space for maxPending messages.
const maxPending = 48

// NewBroker returns a Broker that calls send for each message to the
// dispatcher. The channel has space for maxPending messages, so send waits only
// if the dispatcher does not read.
func NewBroker(send func(ipc.Message, ...int) error) *Broker {
	return &Broker{
		send:      send,
		dialSem:   make(chan struct{}, maxPending),
		audit:     newAuditClient(),
		resolver:  newRemoteService(ipc.Resolver),
		lookupSem: make(chan struct{}, maxPending),
	}
}

// roundTrip sends one request to the dispatcher and waits for the answer. The
// function question returns the message for the request with the number id. The
// caller must close the descriptors in the answer.
func (b *Broker) roundTrip(ctx context.Context, question func(id uint64) ipc.Message) (ipc.Received, error) {
	select {
	case b.dialSem <- struct{}{}:
		defer func() { <-b.dialSem }()
	case <-ctx.Done():
		return ipc.Received{}, ctx.Err()
	}
	id, answer := b.pending.register()
	if err := b.send(question(id)); err != nil {
		b.pending.forget(id, answer)
		return ipc.Received{}, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		received, _ := b.pending.forget(id, answer)
		closeAll(received.FDs)
		return ipc.Received{}, ctx.Err()
	}
}

// deliver passes an answer to the goroutine that waits for it. If no goroutine
// waits for it, deliver closes the answer's descriptors.
func (b *Broker) deliver(r ipc.Received) {
	if !b.pending.answer(answeredID(r.Message), r) {
		closeAll(r.FDs)
	}
}

// closeAll closes the descriptors of an answer that is no longer needed.
func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

func answeredID(m ipc.Message) uint64 {
	switch m := m.(type) {
	case *work.Dialed:
		return m.ID
	case *work.DialFailed:
		return m.ID
	}
	return 0
}

// lookupTimeout is how long a worker waits for the resolver. It is longer than
// the time that the resolver waits for a directory service.
const lookupTimeout = 10 * time.Second

var errNoUserDatabase = errors.New("the user database is unavailable")

// Name returns the name of a user or group, or "" if it has none.
func (b *Broker) Name(group bool, number uint32) (string, error) {
	if b == nil {
		return "", errNoUserDatabase
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	result, err := b.lookup(ctx, work.Lookup{Group: group, Number: number})
	if err != nil {
		return "", err
	}
	return result.Name, nil
}

// lookupID returns the id of the user or group with this name. If no user or
// group has this name, it returns ipc.NoID.
func (b *Broker) lookupID(ctx context.Context, group bool, name string) (uint32, error) {
	if b == nil {
		return 0, errNoUserDatabase
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	result, err := b.lookup(ctx, work.Lookup{Group: group, Name: name})
	if err != nil {
		return 0, err
	}
	return result.Number, nil
}

// lookup asks the resolver about a user or group, and waits for the answer.
func (b *Broker) lookup(ctx context.Context, q work.Lookup) (*work.LookupResult, error) {
	select {
	case b.lookupSem <- struct{}{}:
		defer func() { <-b.lookupSem }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m, err := b.resolver.ask(ctx, func(l *link) sendFunc { return l.channel.TrySend }, nil, func(id uint64) ipc.Message {
		q.ID = id
		return &q
	})
	if err != nil {
		return nil, err
	}
	result, ok := m.(*work.LookupResult)
	if !ok || !result.Available {
		return nil, errNoUserDatabase
	}
	return result, nil
}

// ownName returns a function that returns the name of the worker's own user.
// That function returns "" if the uid has no name or if the user database is
// unavailable.
func (b *Broker) ownName(uid uint32) func() string {
	var cached atomic.Pointer[name]
	return func() string {
		if n := cached.Load(); n != nil && time.Now().Before(n.expires) {
			return n.text
		}
		text, err := b.Name(false, uid)
		if err != nil {
			slog.Warn("worker's user name not found; requests with a name header get 401", "uid", uid, "error", err,
				"hint", fmt.Sprintf("getent passwd %d", uid))
		}
		if text != "" {
			cached.Store(&name{text, time.Now().Add(nameTTL)})
		}
		return text
	}
}
