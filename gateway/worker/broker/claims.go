package broker

import (
	"context"
	"log/slog"
	"time"

	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/keystate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// claims implements rest.Keys with the Idempotency-Keys that the auditor
// stores.
type claims struct{ auditor *service }

const (
	// claimTimeout is how long a worker waits for the answer when it claims an
	// Idempotency-Key.
	claimTimeout = 10 * time.Second
	// settleTimeout is the maximum time for which the worker holds back a
	// client's answer while it waits for the auditor to store that answer.
	settleTimeout = 5 * time.Second
)

// Claim implements rest.Keys. It waits even if the client disconnects,
// because every granted claim must be settled.
func (k claims) Claim(_ context.Context, claim rest.KeyClaim) (keystate.State, []byte, func(keystate.State, []byte), error) {
	limit, cancel := within(claimTimeout)
	defer cancel()
	var number uint64
	var answer ipc.Message
	l, err := k.auditor.connected()
	if err == nil {
		answer, err = l.ask(limit, l.channel.Send, func(id uint64) ipc.Message {
			number = id
			return &query.Claim{ID: id, Key: claim.Key, User: claim.User, Body: claim.Body}
		})
	}
	if err != nil {
		return 0, nil, nil, errs.Wrap(err, errs.Unavailable, "the Idempotency-Key can't be kept now; nothing was submitted")
	}
	claimed, ok := answer.(*query.Claimed)
	if !ok {
		return keystate.Full, nil, nil, nil
	}
	settle := func(state keystate.State, answer []byte) { settleClaim(l, number, state, answer) }
	return claimed.State, claimed.Answer, settle, nil
}

// settleClaim sends the outcome of a claimed request to the auditor, and waits
// until the auditor has stored it. If this fails, the client still gets its
// answer. But the answer to later requests with the same key says that the
// outcome is unknown.
func settleClaim(l *link, claim uint64, state keystate.State, answer []byte) {
	limit, cancel := within(settleTimeout)
	defer cancel()
	_, err := l.ask(limit, l.channel.Send, func(id uint64) ipc.Message {
		return &query.Settle{ID: id, Claim: claim, State: state, Answer: answer}
	})
	if err != nil {
		slog.Warn("answer for an Idempotency-Key not kept", "error", err)
	}
}
