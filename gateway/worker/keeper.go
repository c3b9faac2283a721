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

// keeperClient asks the keeper to sign TLS handshakes and to verify tokens.
type keeperClient struct {
	*remoteService
	signSem, verifySem chan struct{} // each holds one element for each pending question; separate, so that signatures do not delay tokens
	outdated           atomic.Bool   // whether the keeper can no longer use the token key file
}

const (
	maxQuestions  = 64               // limit on the pending questions of each kind; the channel has space for far more
	signTimeout   = 10 * time.Second // far longer than a signature takes
	verifyTimeout = time.Second      // far longer than the verification takes; after this time, a daemon is asked instead
)

var errUnsigned = errors.New("the keeper refused to sign this handshake")

func newKeeperClient() *keeperClient {
	return &keeperClient{
		remoteService: newRemoteService(ipc.Keeper),
		signSem:       make(chan struct{}, maxQuestions),
		verifySem:     make(chan struct{}, maxQuestions),
	}
}

// isLost reports whether the keeper of this worker has exited.
func (r *keeperClient) isLost() bool {
	l := r.link.Load()
	if l == nil {
		return false
	}
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// sign asks the keeper to sign a message of a TLS handshake.
func (r *keeperClient) sign(scheme uint16, message []byte) ([]byte, error) {
	timer := time.NewTimer(signTimeout)
	defer timer.Stop()
	select {
	case r.signSem <- struct{}{}:
		defer func() { <-r.signSem }()
	case <-timer.C:
		return nil, errNoService
	}
	answer, err := r.ask(context.Background(), func(l *link) sendFunc { return l.channel.Send }, timer.C, func(id uint64) ipc.Message {
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
// verifyTimeout. If there is no keeper, it returns auth.Unknown immediately.
func (r *keeperClient) verify(ctx context.Context, s auth.Signature) auth.Answer {
	question := &query.Verify{Signed: []byte(s.Signed)}
	if len(s.Bytes) != len(question.MAC) {
		return auth.Bad
	}
	copy(question.MAC[:], s.Bytes)
	l := r.link.Load()
	if l == nil {
		return auth.Unknown
	}
	timer := time.NewTimer(verifyTimeout)
	defer timer.Stop()
	select {
	case r.verifySem <- struct{}{}:
		defer func() { <-r.verifySem }()
	case <-l.closed:
		return auth.Unknown
	case <-timer.C:
		return auth.Unknown
	case <-ctx.Done():
		return auth.Unknown
	}
	answer, err := l.ask(ctx, l.channel.TrySend, timer.C, func(id uint64) ipc.Message {
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
