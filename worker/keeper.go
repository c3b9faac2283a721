package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"schedrestd/auth"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// remote is the worker's connection to the keeper, which signs TLS handshakes
// and verifies tokens.
type remote struct {
	*remoteService
	signing, verifying chan struct{} // have an element for each pending question; separate, so that signatures do not delay tokens
	outdated           atomic.Bool   // the keeper can't use the file of the token key any more
}

const (
	maxAsked    = 64               // pending questions of each kind; the channel has space for far more
	signLimit   = 10 * time.Second // far longer than a signature takes
	verifyLimit = time.Second      // far longer than the verification takes; afterwards, a daemon is asked instead
)

var (
	errUnsigned = errors.New("the keeper refused to sign this handshake")
)

func newRemote() *remote {
	return &remote{remoteService: newRemoteService(ipc.Keeper), signing: make(chan struct{}, maxAsked), verifying: make(chan struct{}, maxAsked)}
}

// isLost reports whether the keeper of this worker has exited.
func (r *remote) isLost() bool {
	l := r.link.Load()
	if l == nil {
		return false
	}
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// sign asks the keeper to sign a message of a handshake.
func (r *remote) sign(scheme uint16, message []byte) ([]byte, error) {
	late := time.NewTimer(signLimit)
	defer late.Stop()
	select {
	case r.signing <- struct{}{}:
		defer func() { <-r.signing }()
	case <-late.C:
		return nil, errNoService
	}
	answer, err := r.ask(context.Background(), func(l *link) func(ipc.Message, ...int) error { return l.channel.Send }, late.C, func(id uint64) ipc.Message {
		return &query.Sign{ID: id, Scheme: scheme, Message: message}
	})
	if err != nil {
		return nil, err
	}
	if signed, ok := answer.(*query.Signed); ok && len(signed.Signature) > 0 {
		return signed.Signature, nil
	}
	return nil, errUnsigned
}

// verify asks the keeper to verify a token's signature, and waits for at most
// verifyLimit. Without a keeper it immediately returns auth.Unknown.
func (r *remote) verify(ctx context.Context, s auth.Signature) auth.Answer {
	question := &query.Verify{Signed: []byte(s.Signed)}
	if len(s.Bytes) != len(question.MAC) {
		return auth.Bad
	}
	copy(question.MAC[:], s.Bytes)
	l := r.link.Load()
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
	if verified, ok := answer.(*query.Verified); ok && err == nil {
		if verified.Verdict == query.Outdated {
			r.outdated.Store(true)
		}
		return map[query.Verdict]auth.Answer{query.Genuine: auth.Good, query.Forged: auth.Bad}[verified.Verdict]
	}
	return auth.Unknown
}
