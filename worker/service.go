package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// remoteService is the worker's channel to one service. The service may exit and be started again:
// the parent then brings another channel, and what waits for an answer is asked again there.
type remoteService struct {
	role ipc.Role
	late func(*link, ipc.Message) // takes an answer that nobody waits for any more; may be nil

	mu   sync.Mutex    // guards what follows
	link *link         // nil: none now
	more chan struct{} // closed when link changes, and made again
}

// link is one channel to a process of a service.
type link struct {
	channel *ipc.Channel
	gone    chan struct{} // closed when nothing more comes from it
	asked   asked[ipc.Message]
	late    func(*link, ipc.Message)
}

func newRemoteService(role ipc.Role) *remoteService {
	return &remoteService{role: role, more: make(chan struct{})}
}

// connect uses the channel fd to the service in place of the one before.
func (r *remoteService) connect(fd int) error {
	channel, err := ipc.Open(fd, ipc.Worker, r.role)
	if err != nil {
		return err
	}
	l := &link{channel: channel, gone: make(chan struct{}), late: r.late}
	go r.listen(l)
	r.replace(l, nil)
	return nil
}

// replace makes l the link to use; with old, only in place of that one.
func (r *remoteService) replace(l, old *link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old != nil && r.link != old {
		return
	}
	if r.link != nil {
		_ = r.link.channel.Close() // what waits there is asked again
	}
	r.link = l
	close(r.more)
	r.more = make(chan struct{})
}

// listen takes the answers that come by one link until its channel closes.
func (r *remoteService) listen(l *link) {
	defer close(l.gone)
	for {
		m, err := l.channel.Receive()
		switch answer := m.Message.(type) {
		case nil:
		case *query.Signed:
			l.asked.answer(answer.ID, answer)
		case *query.Verified:
			l.asked.answer(answer.ID, answer)
		case *ipc.Known:
			l.asked.answer(answer.ID, answer)
		case *query.Noted:
			if !l.asked.answer(answer.ID, answer) {
				l.tooLate(answer)
			}
		default:
			err = ipc.Unheard(answer)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Error("channel to the "+r.role.String()+" failed", "error", err)
			}
			r.replace(nil, l)
			return
		}
	}
}

// now returns the link to use, and what is closed when there is another one.
func (r *remoteService) now() (*link, chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.link, r.more
}

// insist asks a question by send until it is answered by this process of the service or the next one. It
// gives up with errNoService when late does, and with what send or ctx say.
func (r *remoteService) insist(ctx context.Context, send func(*link) func(ipc.Message, ...int) error, late <-chan time.Time, question func(id uint64) ipc.Message) (ipc.Message, error) {
	for {
		l, more := r.now()
		if l != nil {
			answer, err := l.ask(ctx, send(l), late, question)
			if !errors.Is(err, errGone) {
				return answer, err
			}
		}
		select {
		case <-more:
		case <-late:
			return nil, errNoService
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var (
	errGone      = errors.New("the service is gone")
	errNoService = errors.New("the service did not answer in time")
)

// ask asks once, by send; question makes the question of its number.
func (l *link) ask(ctx context.Context, send func(ipc.Message, ...int) error, late <-chan time.Time, question func(id uint64) ipc.Message) (ipc.Message, error) {
	id, answer := l.asked.next()
	defer func() {
		if late, came := l.asked.forget(id, answer); came {
			l.tooLate(late)
		}
	}()
	if err := send(question(id)); err != nil {
		if _, ours := errors.AsType[*ipc.Violation](err); ours || err == ipc.ErrFull {
			return nil, err
		}
		// listen sees the same end, below
	}
	select {
	case m := <-answer:
		return m, nil
	case <-l.gone:
		return nil, errGone
	case <-late:
		return nil, errNoService
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// tooLate takes an answer that nobody waits for any more.
func (l *link) tooLate(m ipc.Message) {
	if l.late != nil {
		l.late(l, m)
	}
}
