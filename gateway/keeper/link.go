package keeper

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"schedrestd/ipc"
)

// An answer is a message that says which question it answers.
type answer interface {
	ipc.Message
	QuestionID() uint64
}

// A link is a channel to a process that answers questions of this one.
type link[A answer] struct {
	channel *ipc.Channel
	done    chan struct{} // closed when the channel is

	mu      sync.Mutex // guards the fields below
	last    uint64     // number of the last question
	waiting map[uint64]chan<- A
}

// newLink makes the descriptor fd a channel to a process of the role peer.
func newLink[A answer](fd int, peer ipc.Role) (*link[A], error) {
	channel, err := ipc.Open(fd, ipc.Keeper, peer)
	if err != nil {
		return nil, err
	}
	l := &link[A]{channel: channel, done: make(chan struct{}), waiting: map[uint64]chan<- A{}}
	go l.listen(peer)
	return l, nil
}

// listen passes answers on until the channel closes. A process that breaks the protocol
// is asked nothing more, and the keeper does all its other work.
func (l *link[A]) listen(peer ipc.Role) {
	defer close(l.done)
	defer l.channel.Close()
	for {
		m, err := l.channel.Receive()
		switch a := m.Message.(type) {
		case nil:
		case A:
			l.mu.Lock()
			if waiting := l.waiting[a.QuestionID()]; waiting != nil {
				delete(l.waiting, a.QuestionID())
				waiting <- a // has room for it
			}
			l.mu.Unlock()
		default:
			err = ipc.Unhandled(a)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Error("channel to the "+peer.String()+" failed", "error", err)
			}
			return
		}
	}
}

// isClosed reports whether the other process is gone.
func (l *link[A]) isClosed() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// ask sends a question, which gets the number that it is called with, and waits for the
// answer. If ok is false, there is none: the other process is gone (isClosed), or does not
// answer in time.
func (l *link[A]) ask(ctx context.Context, question func(id uint64) ipc.Message) (a A, ok bool) {
	got := make(chan A, 1)
	l.mu.Lock()
	l.last++
	id := l.last
	l.waiting[id] = got
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, id)
	}()
	if errors.Is(l.channel.TrySend(question(id)), ipc.ErrFull) {
		return a, false
	}
	select {
	case a = <-got:
		return a, true
	case <-l.done:
	case <-ctx.Done():
	}
	return a, false
}
