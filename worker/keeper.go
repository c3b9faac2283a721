package worker

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"schedrestd/ipc"
)

// remote is the worker's way to the keeper, which signs its handshakes. The keeper may die and be
// started again meanwhile: what was asked is asked again of the next one, and
// clients notice nothing but the time it took.
type remote struct {
	room chan struct{} // has an element for each question that waits

	mu   sync.Mutex
	link *link         // nil: none now
	more chan struct{} // closed when link changes, and made anew
	last uint64        // number of the last question
}

// link is one channel to a keeper.
type link struct {
	channel *ipc.Channel
	gone    chan struct{} // closed when nothing comes from it any more
	mu      sync.Mutex
	waiting map[uint64]chan []byte
}

const (
	maxAsked  = 64               // questions at one time; far fewer than the channel has room for
	signLimit = 10 * time.Second // longer than a keeper needs to be started again
)

var (
	errUnsigned = errors.New("the keeper does not sign this handshake")
	errNoKeeper = errors.New("no keeper signed the handshake in time")
)

func newRemote() *remote {
	return &remote{room: make(chan struct{}, maxAsked), more: make(chan struct{})}
}

// connect takes over a channel to the keeper in place of the one before.
func (r *remote) connect(fd int) error {
	channel, err := ipc.Open(fd, ipc.Worker, ipc.Keeper)
	if err != nil {
		return err
	}
	l := &link{channel: channel, gone: make(chan struct{}), waiting: map[uint64]chan []byte{}}
	go r.listen(l)
	r.replace(l, nil)
	return nil
}

// replace makes l the link to use; with old, only in place of that one.
func (r *remote) replace(l, old *link) {
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

// listen takes the answers of one keeper until its channel closes.
func (r *remote) listen(l *link) {
	defer close(l.gone)
	for {
		m, err := l.channel.Receive()
		if err != nil {
			if bad, ok := errors.AsType[*ipc.Violation](err); ok {
				slog.Error("worker does not hear the keeper any more", "because", bad)
			}
			r.replace(nil, l)
			return
		}
		if signed, ok := m.Message.(*ipc.Signed); ok {
			l.answer(signed)
		}
	}
}

// answer gives a signature to who waits for it; nobody may.
func (l *link) answer(m *ipc.Signed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if who, ok := l.waiting[m.ID]; ok {
		delete(l.waiting, m.ID)
		who <- m.Signature
	}
}

// sign has the keeper sign a handshake's message with the key of that number.
func (r *remote) sign(key uint32, scheme uint16, message []byte) ([]byte, error) {
	late := time.NewTimer(signLimit)
	defer late.Stop()
	select {
	case r.room <- struct{}{}:
		defer func() { <-r.room }()
	case <-late.C:
		return nil, errNoKeeper
	}
	for {
		r.mu.Lock()
		l, more := r.link, r.more
		r.last++
		question := &ipc.Sign{ID: r.last, Key: key, Scheme: scheme, Message: message}
		r.mu.Unlock()
		if l != nil {
			signature, err := l.ask(question, late.C)
			if err == nil || !errors.Is(err, errGone) {
				return signature, err
			}
		}
		select {
		case <-more:
		case <-late.C:
			return nil, errNoKeeper
		}
	}
}

var errGone = errors.New("the keeper is gone")

// ask asks once.
func (l *link) ask(question *ipc.Sign, late <-chan time.Time) ([]byte, error) {
	answer := make(chan []byte, 1)
	l.mu.Lock()
	l.waiting[question.ID] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, question.ID)
		l.mu.Unlock()
	}()
	if err := l.channel.Send(question); err != nil {
		if _, ours := errors.AsType[*ipc.Violation](err); ours {
			return nil, err
		}
		// listen sees the same end, below
	}
	select {
	case signature := <-answer:
		if len(signature) == 0 {
			return nil, errUnsigned
		}
		return signature, nil
	case <-l.gone:
		return nil, errGone
	case <-late:
		return nil, errNoKeeper
	}
}
