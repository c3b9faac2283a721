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
	verified, err := askKeeper[*query.Verified](ctx, k, func(id uint64) ipc.Message {
		question.ID = id
		return question
	})
	if err != nil {
		return auth.Unknown
	}
	return k.answerOf(verified.Verdict)
}

// answerOf returns the answer that a verdict stands for.
func (k *Keeper) answerOf(v query.Verdict) auth.Answer {
	switch v {
	case query.Genuine:
		return auth.Good
	case query.Forged:
		return auth.Bad
	case query.Revoked:
		return auth.Revoked
	case query.Outdated:
		k.outdated.Store(true)
	}
	return auth.Unknown
}

// Exchange asks the keeper for a token of the daemons, in exchange for a gateway
// token. The bearer is "" unless the answer is auth.Good.
func (k *Keeper) Exchange(ctx context.Context, s auth.Signature) (bearer string, answer auth.Answer) {
	question := &query.Exchange{Signed: []byte(s.Signed)}
	if len(s.Bytes) != len(question.MAC) {
		return "", auth.Bad
	}
	copy(question.MAC[:], s.Bytes)
	exchanged, err := askKeeper[*query.Exchanged](ctx, k, func(id uint64) ipc.Message {
		question.ID = id
		return question
	})
	if err != nil {
		return "", auth.Unknown
	}
	return string(exchanged.Bearer), k.answerOf(exchanged.Verdict)
}

// Digests asks the keeper with which key and which register it decides about
// gateway tokens.
func (k *Keeper) Digests(ctx context.Context) (key, register string, err error) {
	digests, err := askKeeper[*query.Digests](ctx, k, func(id uint64) ipc.Message { return &query.AskDigests{ID: id} })
	if err != nil {
		return "", "", err
	}
	return digests.Key, digests.Register, nil
}

var errAnswer = errors.New("the keeper gave an answer to another question")

// askKeeper asks the keeper about tokens, and waits for at most verifyTimeout.
func askKeeper[A ipc.Message](ctx context.Context, k *Keeper, question func(id uint64) ipc.Message) (answer A, err error) {
	l, err := k.service.connected()
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	peer, _ := auth.PeerFrom(ctx) // the token's user is not known yet
	release, err := k.verifying.Enter(ctx, peer.Source())
	if err != nil {
		return answer, err
	}
	defer release()
	m, err := l.ask(ctx, l.channel.TrySend, question)
	if err != nil {
		return answer, err
	}
	answer, ok := m.(A)
	if !ok {
		return answer, errAnswer
	}
	return answer, nil
}
