package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// A Stamper gets the credentials of messages that the users of gateway tokens send to
// the daemons. The keeper decides about each message.
type Stamper struct {
	keeper *Keeper
	send   func(ipc.Message, ...int) error // to the dispatcher
	places *semaphore.Semaphore[string]    // a place is a message; keys are users

	mu sync.Mutex // serializes the messages, whose parts must not mix
}

const (
	stampPart = 24 << 10         // bytes of a body in one message to the keeper
	stampTime = 12 * time.Second // for a credential, for which a process may have to start
	maxStarts = 3                // how often a message has its process started, which may exit in between
)

// noStamp returns the error of a message without a credential.
func noStamp(err error) error {
	return &errs.Error{Kind: errs.Unavailable, Err: err, Message: "the gateway gets no credential for the daemon at present",
		Hint: "try again in a minute; the gateway's log has the reason"}
}

var errNoVerdict = errors.New("the keeper can't verify gateway tokens at present")

// Stamper returns a Stamper that asks the keeper.
func (b *Broker) Stamper(k *Keeper) *Stamper {
	return &Stamper{keeper: k, send: b.dialer.dispatcher.send, places: semaphore.New[string](limit.Stamps)}
}

// Stamp returns the credential of a message with this type number and body, in the name
// of the user of a gateway token, or of the user actAs for whom it acts.
//
// The error is errs.Unauthenticated if the token is no longer accepted, errs.Denied if
// it does not permit the message, or if the gateway gets no credentials for the user,
// and otherwise errs.Unavailable.
func (s *Stamper) Stamp(ctx context.Context, token auth.Signature, actAs string, number uint16, body []byte) (string, error) {
	place, err := s.places.Acquire(ctx, semaphore.KeyFrom(ctx))
	if err != nil {
		return "", errs.Wrap(err, errs.Unavailable, "too many messages wait for credentials")
	}
	defer place.Release()
	ctx, cancel := within(stampTime) // the keeper works on it even if the client leaves
	defer cancel()
	stamp := query.Stamp{Signed: []byte(token.Signed), ActAs: actAs, Type: number}
	if copy(stamp.MAC[:], token.Bytes); len(token.Bytes) != len(stamp.MAC) {
		return "", errs.New(errs.Unauthenticated, auth.Refused)
	}
	answer, err := s.ask(ctx, stamp, body)
	for n := 0; err == nil && answer.Client != 0 && n < maxStarts; n++ { // each answer counts on it that the process is asked for
		if err = s.send(&work.AskCredential{Client: answer.Client, UID: answer.UID}); err == nil {
			answer, err = s.ask(ctx, stamp, body)
		}
	}
	if err == nil && answer.Verdict == query.Genuine && len(answer.Credential) == 0 {
		err = errors.New(cmp.Or(answer.Reason, "the process of the user has exited"))
	}
	if err != nil {
		return "", noStamp(err)
	}
	s.keeper.answerOf(answer.Verdict) // takes note of an outdated key
	switch answer.Verdict {
	case query.Genuine:
		return string(answer.Credential), nil
	case query.Forged, query.Revoked:
		return "", errs.New(errs.Unauthenticated, auth.Refused)
	case query.NotForUser:
		return "", errs.New(errs.Denied, "the gateway gets no credentials for the user of this token").
			WithHint("it gets them for users of the gateway's machine with a uid of SCHEDRESTD_MIN_UID or more, and a token that acts for others for members of its group")
	case query.NotInScope:
		return "", &errs.Error{Kind: errs.Denied, Err: auth.ErrNotInScope, Message: fmt.Sprintf("the scopes of the token do not permit what the gateway has to ask the daemon for this (RPC %d)", number),
			Hint: "schedctl token explain shows the scopes of the token"}
	}
	return "", noStamp(errNoVerdict)
}

// ask sends the message to the keeper, the body in parts, and waits for the answer.
func (s *Stamper) ask(ctx context.Context, stamp query.Stamp, body []byte) (*query.Stamped, error) {
	l, err := s.keeper.service.connected()
	if err != nil {
		return nil, err
	}
	send := func(m ipc.Message, _ ...int) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for len(body) > stampPart {
			if err := l.channel.Send(&query.StampPart{Type: stamp.Type, Body: body[:stampPart]}); err != nil {
				return err
			}
			body = body[stampPart:]
		}
		m.(*query.Stamp).Body = body
		return l.channel.Send(m)
	}
	m, err := l.ask(ctx, send, func(id uint64) ipc.Message {
		stamp.ID = id
		return &stamp
	})
	if err != nil {
		return nil, err
	}
	answer, ok := m.(*query.Stamped)
	if !ok {
		return nil, errAnswer
	}
	return answer, nil
}
