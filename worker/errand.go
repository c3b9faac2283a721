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
)

// Errands is what a worker has others do, since its sandbox denies it: the parent opens ways to the daemons, and the
// resolver finds names.
type Errands struct {
	send func(ipc.Message, ...int) error
	free chan struct{} // has an element for each errand that is out

	changes *changes // to be recorded
	stock   stock    // for connections to come

	resolver *remoteService
	asking   chan struct{} // has an element for each name that is asked for

	asked asked[ipc.Received]
}

// mostOut is how many errands are out at a time, and how many names are asked for; the resolver takes no
// more, and the channels have room for them.
const mostOut = 48

// NewErrands sends by send, which must not wait for room for ever.
func NewErrands(send func(ipc.Message, ...int) error) *Errands {
	return &Errands{send: send, free: make(chan struct{}, mostOut), changes: newChanges(), resolver: newRemoteService(ipc.Resolver), asking: make(chan struct{}, mostOut)}
}

// do has one errand done; question makes it of its number. Descriptors that come are the caller's.
func (e *Errands) do(ctx context.Context, question func(id uint64) ipc.Message) (ipc.Received, error) {
	select {
	case e.free <- struct{}{}:
		defer func() { <-e.free }()
	case <-ctx.Done():
		return ipc.Received{}, ctx.Err()
	}
	id, answer := e.asked.next()
	if err := e.send(question(id)); err != nil {
		e.asked.forget(id, answer)
		return ipc.Received{}, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		late, _ := e.asked.forget(id, answer)
		closeAll(late.FDs)
		return ipc.Received{}, ctx.Err()
	}
}

// hear takes an answer to who waits for it; nobody may.
func (e *Errands) hear(r ipc.Received) {
	if !e.asked.answer(errandID(r.Message), r) {
		closeAll(r.FDs)
	}
}

// closeAll closes descriptors that nobody waits for any more.
func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

func errandID(m ipc.Message) uint64 {
	switch m := m.(type) {
	case *ipc.Dialed:
		return m.ID
	case *ipc.Undialed:
		return m.ID
	}
	return 0
}

// nameLimit is longer than a directory service is asked.
const nameLimit = 10 * time.Second

var errUnnamed = errors.New("the user database is unavailable")

// Name returns the name of a user or group, "" when it has none.
func (e *Errands) Name(group bool, number uint32) (string, error) {
	if e == nil {
		return "", errUnnamed
	}
	ctx, cancel := context.WithTimeout(context.Background(), nameLimit)
	defer cancel()
	known, err := e.ask(ctx, ipc.Who{Group: group, Number: number})
	if err != nil {
		return "", err
	}
	return known.Name, nil
}

// number returns the number of a user or group; ipc.NoID when there is none of
// that name.
func (e *Errands) number(ctx context.Context, group bool, name string) (uint32, error) {
	if e == nil {
		return 0, errUnnamed
	}
	ctx, cancel := context.WithTimeout(ctx, nameLimit)
	defer cancel()
	known, err := e.ask(ctx, ipc.Who{Group: group, Name: name})
	if err != nil {
		return 0, err
	}
	return known.Number, nil
}

// ask has the resolver answer a question about a user or group.
func (e *Errands) ask(ctx context.Context, q ipc.Who) (*ipc.Known, error) {
	select {
	case e.asking <- struct{}{}:
		defer func() { <-e.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m, err := e.resolver.ask(ctx, func(l *link) func(ipc.Message, ...int) error { return l.channel.TrySend }, nil, func(id uint64) ipc.Message {
		q.ID = id
		return &q
	})
	if err != nil {
		return nil, err
	}
	known, ok := m.(*ipc.Known)
	if !ok || !known.Sure {
		return nil, errUnnamed
	}
	return known, nil
}

// ownName returns a function that returns the name of uid, the worker's own; "" when it has none or the user
// database is unavailable.
func (e *Errands) ownName(uid uint32) func() string {
	var last atomic.Pointer[name]
	return func() string {
		if n := last.Load(); n != nil && time.Now().Before(n.until) {
			return n.text
		}
		text, err := e.Name(false, uid)
		if err != nil {
			slog.Warn("worker's user name not found; requests with a name header get 401", "uid", uid, "error", err,
				"hint", fmt.Sprintf("getent passwd %d", uid))
		}
		if text != "" {
			last.Store(&name{text, time.Now().Add(keepNames)})
		}
		return text
	}
}
