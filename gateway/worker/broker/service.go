package broker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// A service is this worker's channel to a service. When a service exits, the
// dispatcher replaces the service and all workers that use it. Until a worker
// is replaced, it gets no answers from the service.
type service struct {
	role   ipc.Role
	onLate func(*link, ipc.Message) // handles an answer that arrives too late; may be nil
	link   atomic.Pointer[link]     // nil if there is no channel
}

// A link is a channel to one process of a service.
type link struct {
	channel *ipc.Channel
	closed  chan struct{} // closed when the channel is closed
	pending pending[ipc.Message]
	onLate  func(*link, ipc.Message)
}

func newService(role ipc.Role) *service { return &service{role: role} }

// connect makes the descriptor fd the channel to the service.
func (s *service) connect(fd int) error {
	channel, err := ipc.Open(fd, ipc.Worker, s.role)
	if err != nil {
		return err
	}
	l := &link{channel: channel, closed: make(chan struct{}), onLate: s.onLate}
	s.link.Store(l)
	go s.listen(l)
	return nil
}

// listen handles the answers of a link until its channel closes.
func (s *service) listen(l *link) {
	defer close(l.closed)
	defer l.channel.Close() // also ends a Send that waits for space
	for {
		m, err := l.channel.Receive()
		switch answer := m.Message.(type) {
		case nil:
		case *query.Signed:
			l.pending.answer(answer.ID, answer)
		case *query.Verified:
			l.pending.answer(answer.ID, answer)
		case *query.Exchanged:
			l.pending.answer(answer.ID, answer)
		case *query.Digests:
			l.pending.answer(answer.ID, answer)
		case *query.Stamped:
			l.pending.answer(answer.ID, answer)
		case *query.TokensManaged:
			l.pending.answer(answer.ID, answer)
		case *query.VouchedFor:
			l.pending.answer(answer.ID, answer)
		case *work.LookupResult:
			l.pending.answer(answer.ID, answer)
		case *query.IntentDecision:
			if !l.pending.answer(answer.ID, answer) {
				l.handleLate(answer)
			}
		case *query.OutputPart:
			l.pending.answer(answer.ID, answer)
		case *query.Settled:
			l.pending.answer(answer.ID, answer)
		default:
			err = ipc.Unhandled(answer)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Error("channel to the "+s.role.String()+" failed", "error", err)
			}
			return
		}
	}
}

// connected returns the link to the service, or errGone if there is none.
func (s *service) connected() (*link, error) {
	if l := s.link.Load(); l != nil {
		return l, nil
	}
	return nil, errGone
}

// isClosed reports whether there is no channel to the service, or one that is closed.
func (s *service) isClosed() bool {
	l, err := s.connected()
	if err != nil {
		return true
	}
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// sendFunc is the type of the methods Channel.Send and Channel.TrySend of
// package ipc.
type sendFunc = func(ipc.Message, ...int) error

var (
	errGone      = errors.New("the service is gone")
	errNoService = errors.New("the service did not answer in time")
)

// within returns a context for a question that the service must answer within
// the time limit. The end of a client's request does not end it.
func within(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), limit, errNoService)
}

// ask assigns a number to a question, sends the question, and waits for the
// answer. The question function returns the message for the number, and the
// function send sends it. If the service has exited, the error is errGone. Any
// other error comes from send, or is the cause for which ctx ended.
func (l *link) ask(ctx context.Context, send sendFunc, question func(id uint64) ipc.Message) (ipc.Message, error) {
	id, answer := l.pending.register()
	return l.exchange(ctx, send, id, question(id), answer)
}

// exchange sends a question with the number id, and waits for the answer like
// ask.
func (l *link) exchange(ctx context.Context, send sendFunc, id uint64, question ipc.Message, answer <-chan ipc.Message) (ipc.Message, error) {
	err := send(question)
	if _, isViolation := errors.AsType[*ipc.Violation](err); !isViolation && err != ipc.ErrFull {
		select { // the function listen detects other failures, too
		case m := <-answer:
			return m, nil
		case <-l.closed:
			err = errGone
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if late, ok := l.pending.forget(id, answer); ok {
		l.handleLate(late)
	}
	return nil, err
}

// handleLate handles an answer for which no goroutine waits any longer.
func (l *link) handleLate(m ipc.Message) {
	if l.onLate != nil {
		l.onLate(l, m)
	}
}
