package broker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// A Keeper stands for the keeper process. It passes the worker's questions on:
// the keeper signs TLS handshakes and verifies tokens.
type Keeper struct {
	service  *service
	outdated atomic.Bool // see IsOutdated

	// These are separate, so that signatures do not delay tokens, nor tokens for
	// which the keeper asks the resolver other tokens. Keys are sources.
	signing, verifying, acting *semaphore.Semaphore[string]
}

const (
	signTimeout   = 10 * time.Second // far longer than a signature takes
	verifyTimeout = time.Second      // far longer than the verification takes; after this time, a daemon is asked instead
	actingTimeout = lookupTimeout    // for a token that acts for the members of a group, which the resolver has to look up
)

var errUnsigned = errors.New("the keeper refused to sign this handshake")

// NewKeeper returns a Keeper without a channel.
func NewKeeper() *Keeper {
	return &Keeper{service: newService(ipc.Keeper), signing: semaphore.New[string](limit.Signatures), verifying: semaphore.New[string](limit.KeeperTokens),
		acting: semaphore.New[string](limit.PortalTokens)}
}

// Connect makes the descriptor fd the channel to the keeper.
func (k *Keeper) Connect(fd int) error { return k.service.connect(fd) }

// IsLost reports whether the keeper of this worker has exited.
func (k *Keeper) IsLost() bool {
	return k.service.link.Load() != nil && k.service.isClosed()
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
	place, err := k.signing.Acquire(ctx, source)
	if err != nil {
		return nil, err
	}
	defer place.Release()
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
	verified, err := askKeeper[*query.Verified](ctx, k, k.verifying, verifyTimeout, func(id uint64) ipc.Message {
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
	case query.NotForUser:
		return auth.NotForUser
	case query.Outdated:
		k.outdated.Store(true)
	}
	return auth.Unknown
}

// Exchange asks the keeper for a token of the daemons, in exchange for a gateway
// token. The argument actAs is the user that the request names, or "". The bearer is
// "" unless the answer is auth.Good.
func (k *Keeper) Exchange(ctx context.Context, s auth.Signature, actAs string) (bearer string, answer auth.Answer) {
	places, timeout := k.verifying, verifyTimeout
	if actAs != "" {
		places, timeout = k.acting, actingTimeout
	}
	return k.exchange(ctx, places, timeout, s, query.Exchange{ActAs: actAs})
}

// Check asks the keeper whether a gateway token is still accepted, as far as the
// keeper knows this without the resolver.
func (k *Keeper) Check(ctx context.Context, s auth.Signature, actAs string) auth.Answer {
	_, answer := k.exchange(ctx, k.verifying, verifyTimeout, s, query.Exchange{ActAs: actAs, Check: true})
	return answer
}

func (k *Keeper) exchange(ctx context.Context, places *semaphore.Semaphore[string], timeout time.Duration, s auth.Signature, question query.Exchange) (bearer string, answer auth.Answer) {
	question.Signed = []byte(s.Signed)
	if len(s.Bytes) != len(question.MAC) {
		return "", auth.Bad
	}
	copy(question.MAC[:], s.Bytes)
	exchanged, err := askKeeper[*query.Exchanged](ctx, k, places, timeout, func(id uint64) ipc.Message {
		question.ID = id
		return &question
	})
	if err != nil {
		return "", auth.Unknown
	}
	return string(exchanged.Bearer), k.answerOf(exchanged.Verdict)
}

// vouchFor asks the keeper for a number that stands for the user of a token, and for
// the uid of this user. The argument actAs is the user that the request names, or "".
// The error is errs.Unauthenticated if the token is no longer accepted, and
// errs.Denied if no process may run as this user.
func (k *Keeper) vouchFor(ctx context.Context, s auth.Signature, gateway bool, actAs string) (client uint64, uid uint32, err error) {
	question := query.VouchFor{Signed: []byte(s.Signed), ActAs: actAs, Gateway: gateway}
	if copy(question.MAC[:], s.Bytes) < len(s.Bytes) {
		question.RSA = s.Bytes
	}
	vouched, err := askKeeper[*query.VouchedFor](ctx, k, k.acting, actingTimeout, func(id uint64) ipc.Message {
		question.ID = id
		return &question
	})
	if k.service.link.Load() == nil || err == nil && vouched.Verdict == query.Outdated { // without any key there is no keeper
		if question.RSA == nil {
			return 0, 0, errs.New(errs.Denied, "output is read only for users of tokens that the gateway can verify, and it has no key for this one").
				WithHint("an administrator can let the gateway read the file of jwt_key= (KEYS.md)")
		}
		return 0, 0, errs.New(errs.Denied, "output is read only for users of tokens that the gateway can verify, and its key set does not verify this one").
			WithHint("an administrator can let the gateway read the file of jwks= (KEYS.md); or use a token of schedctl token create, or of scontrol token")
	}
	answer := auth.Unknown
	if err == nil {
		answer = k.answerOf(vouched.Verdict)
	}
	switch {
	case answer == auth.Unknown:
		return 0, 0, errs.New(errs.Unavailable, "it can't be verified at present as which user to read")
	case answer == auth.Bad, answer == auth.Revoked:
		return 0, 0, errs.New(errs.Unauthenticated, auth.Refused)
	case answer != auth.Good, vouched.Client == 0:
		return 0, 0, errs.New(errs.Denied, "no output is read for the user of this token").
			WithHint("it is read for users of the gateway's machine with a uid of SCHEDRESTD_MIN_UID or more; a token of Slurm must name the user in the claim sun, that of a provider in sun, username or userclaimfield=, and a gateway token needs the scope compute.read")
	}
	return vouched.Client, vouched.UID, nil
}

// manageTimeout is longer than a change of the register takes until the keeper decides
// by it.
const manageTimeout = 15 * time.Second

// Manage asks the keeper to manage gateway tokens. It sets the question's ID. The
// answer about the question's token is auth.Unknown if the keeper has not answered.
func (k *Keeper) Manage(ctx context.Context, q *query.ManageTokens) (*query.TokensManaged, auth.Answer) {
	managed, err := askKeeper[*query.TokensManaged](ctx, k, k.acting, manageTimeout, func(id uint64) ipc.Message {
		q.ID = id
		return q
	})
	if err != nil {
		return nil, auth.Unknown
	}
	return managed, k.answerOf(managed.Verdict)
}

// Digests asks the keeper with which key and which register it decides about
// gateway tokens.
func (k *Keeper) Digests(ctx context.Context) (key, register string, err error) {
	digests, err := askKeeper[*query.Digests](ctx, k, k.verifying, verifyTimeout, func(id uint64) ipc.Message { return &query.AskDigests{ID: id} })
	if err != nil {
		return "", "", err
	}
	return digests.Key, digests.Register, nil
}

var errAnswer = errors.New("the keeper gave an answer to another question")

// askKeeper asks the keeper about tokens. It takes one of the places, and waits no
// longer than the timeout.
func askKeeper[A ipc.Message](ctx context.Context, k *Keeper, places *semaphore.Semaphore[string], timeout time.Duration, question func(id uint64) ipc.Message) (answer A, err error) {
	l, err := k.service.connected()
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	peer, _ := auth.PeerFrom(ctx) // the token's user is not known yet
	place, err := places.Acquire(ctx, peer.Source())
	if err != nil {
		return answer, err
	}
	defer place.Release()
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
