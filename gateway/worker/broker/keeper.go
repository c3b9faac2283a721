package broker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"schedrestd/auth"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// A Keeper stands for the keeper process. It passes the worker's questions on:
// the keeper signs TLS handshakes and verifies tokens.
type Keeper struct {
	service            *service
	signing, verifying *semaphore.Semaphore[string] // separate, so that signatures do not delay tokens; keys are sources
	outdated           atomic.Bool                  // see IsOutdated
}

const (
	signTimeout   = 10 * time.Second // far longer than a signature takes
	verifyTimeout = time.Second      // far longer than the verification takes; after this time, a daemon is asked instead
)

var errUnsigned = errors.New("the keeper refused to sign this handshake")

// NewKeeper returns a Keeper without a channel.
func NewKeeper() *Keeper {
	return &Keeper{service: newService(ipc.Keeper), signing: semaphore.New[string](limit.Signatures), verifying: semaphore.New[string](limit.KeeperTokens)}
}

// Connect makes the descriptor fd the channel to the keeper.
func (k *Keeper) Connect(fd int) error { return k.service.connect(fd) }

// IsLost reports whether the keeper of this worker has exited.
func (k *Keeper) IsLost() bool {
	l, err := k.service.connected()
	if err != nil {
		return false
	}
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// IsOutdated reports whether the keeper can no longer use the file of the token
// key.
func (k *Keeper) IsOutdated() bool { return k.outdated.Load() }

// Sign asks the keeper to sign a message of a TLS handshake. The argument
// scheme is the number of a tls.SignatureScheme, and source is that of the client
// (auth.Peer.Source).
func (k *Keeper) Sign(source string, scheme uint16, message []byte) ([]byte, error) {
	ctx, cancel := within(signTimeout)
	defer cancel()
	release, err := k.signing.Enter(ctx, source)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := k.service.connected()
	if err != nil {
		return nil, err
	}
	answer, err := l.ask(ctx, l.channel.Send, func(id uint64) ipc.Message {
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

// Verify asks the keeper to verify a token's signature, and waits for at most
// verifyTimeout. If there is no keeper, it returns auth.Unknown immediately.
func (k *Keeper) Verify(ctx context.Context, s auth.Signature) auth.Answer {
	question := &query.Verify{Signed: []byte(s.Signed)}
	if len(s.Bytes) != len(question.MAC) {
		return auth.Bad
	}
	copy(question.MAC[:], s.Bytes)
	l, err := k.service.connected()
	if err != nil {
		return auth.Unknown
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	peer, _ := auth.PeerFrom(ctx) // the token's user is not known yet
	release, err := k.verifying.Enter(ctx, peer.Source())
	if err != nil {
		return auth.Unknown
	}
	defer release()
	answer, err := l.ask(ctx, l.channel.TrySend, func(id uint64) ipc.Message {
		question.ID = id
		return question
	})
	if verified, ok := answer.(*query.Verified); ok && err == nil {
		if verified.Verdict == query.Outdated {
			k.outdated.Store(true)
		}
		return map[query.Verdict]auth.Answer{query.Genuine: auth.Good, query.Forged: auth.Bad}[verified.Verdict]
	}
	return auth.Unknown
}
