package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"schedrestd/auth"
	"schedrestd/ipc"
)

// remote is the worker's way to the keeper, which signs its handshakes and verifies tokens. The keeper
// may die and be started again meanwhile: a handshake that was asked for is asked for again of the next
// one, and clients notice nothing but the time it took.
type remote struct {
	signing, verifying chan struct{} // have an element for each question that waits: who waits for a signature holds up no token

	mu   sync.Mutex
	link *link         // nil: none now
	more chan struct{} // closed when link changes, and made anew
}

// link is one channel to a keeper.
type link struct {
	channel *ipc.Channel
	gone    chan struct{} // closed when nothing comes from it any more
	asked   asked[ipc.Message]
}

const (
	maxAsked    = 64               // questions of one kind at one time; far fewer than the channel has room for
	signLimit   = 10 * time.Second // longer than a keeper needs to be started again
	verifyLimit = time.Second      // far longer than it takes; then a daemon is asked instead
)

var (
	errUnsigned = errors.New("the keeper does not sign this handshake")
	errNoKeeper = errors.New("no keeper signed the handshake in time")
)

func newRemote() *remote {
	return &remote{signing: make(chan struct{}, maxAsked), verifying: make(chan struct{}, maxAsked), more: make(chan struct{})}
}

// connect takes over a channel to the keeper in place of the one before.
func (r *remote) connect(fd int) error {
	channel, err := ipc.Open(fd, ipc.Worker, ipc.Keeper)
	if err != nil {
		return err
	}
	l := &link{channel: channel, gone: make(chan struct{})}
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
		switch answer := m.Message.(type) {
		case nil:
		case *ipc.Signed:
			l.asked.answer(answer.ID, answer)
		case *ipc.Verified:
			l.asked.answer(answer.ID, answer)
		default:
			err = ipc.Unheard(answer)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Error("worker does not hear the keeper any more", "because", err)
			}
			r.replace(nil, l)
			return
		}
	}
}

// sign has the keeper sign a handshake's message with the key of that number.
func (r *remote) sign(key uint32, scheme uint16, message []byte) ([]byte, error) {
	late := time.NewTimer(signLimit)
	defer late.Stop()
	select {
	case r.signing <- struct{}{}:
		defer func() { <-r.signing }()
	case <-late.C:
		return nil, errNoKeeper
	}
	for {
		l, more := r.now()
		if l != nil {
			answer, err := l.ask(context.Background(), l.channel.Send, late.C, func(id uint64) ipc.Message {
				return &ipc.Sign{ID: id, Key: key, Scheme: scheme, Message: message}
			})
			if signed, ok := answer.(*ipc.Signed); ok && len(signed.Signature) > 0 {
				return signed.Signature, nil
			}
			if err == nil {
				return nil, errUnsigned
			}
			if !errors.Is(err, errGone) {
				return nil, err
			}
		}
		select {
		case <-more:
		case <-late.C:
			return nil, errNoKeeper
		}
	}
}

// now is the link to use, and what is closed when there is another one.
func (r *remote) now() (*link, chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.link, r.more
}

// verify has the keeper verify a token's signature. Where there is no keeper there is no answer, at once; one
// that does not answer is waited for, verifyLimit at the most.
func (r *remote) verify(ctx context.Context, s auth.Signature) auth.Answer {
	question := &ipc.Verify{Signed: []byte(s.Signed)}
	if len(s.Bytes) != len(question.MAC) {
		return auth.Bad
	}
	copy(question.MAC[:], s.Bytes)
	l, _ := r.now()
	if l == nil {
		return auth.Unknown
	}
	late := time.NewTimer(verifyLimit)
	defer late.Stop()
	select {
	case r.verifying <- struct{}{}:
		defer func() { <-r.verifying }()
	case <-l.gone:
		return auth.Unknown
	case <-late.C:
		return auth.Unknown
	case <-ctx.Done():
		return auth.Unknown
	}
	answer, err := l.ask(ctx, l.channel.TrySend, late.C, func(id uint64) ipc.Message {
		question.ID = id
		return question
	})
	if verified, ok := answer.(*ipc.Verified); ok && err == nil {
		return map[ipc.Verdict]auth.Answer{ipc.Genuine: auth.Good, ipc.Forged: auth.Bad}[verified.Verdict]
	}
	return auth.Unknown
}

var errGone = errors.New("the keeper is gone")

// ask asks once, by send; question makes the question of its number.
func (l *link) ask(ctx context.Context, send func(ipc.Message, ...int) error, late <-chan time.Time, question func(id uint64) ipc.Message) (ipc.Message, error) {
	id, answer := l.asked.next()
	defer l.asked.forget(id, answer)
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
		return nil, errNoKeeper
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
