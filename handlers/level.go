package handlers

import (
	"context"
	"errors"
	"sync"
	"time"

	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// The type levels finds out which users are operators or administrators, for whom
// the token of a portal does not act: a stolen one must do nothing that concerns the
// whole cluster. It asks the accounting daemon, as the user, and remembers the answer
// for a while. Without an answer, the request is refused.
//
// This check is the worker's. It does not hold if an attacker controls the worker.
type levels struct {
	accounting Accounting
	now        func() time.Time

	mu      sync.Mutex // guards the fields below
	known   map[string]level
	pending map[string]*levelSearch
}

// A level is what is known about a user.
type level struct {
	high    bool // an operator or administrator
	expires time.Time
}

// A levelSearch is a question that several requests of a user wait for.
type levelSearch struct {
	done chan struct{} // closed when the question is answered or abandoned
	err  error         // valid when done is closed
}

const (
	levelTTL     = 30 * time.Second
	levelTimeout = 10 * time.Second // slurmdbd may be busy for far longer, but a client waits for each request
	maxLevels    = 4096             // a full map is cleared
)

func newLevels(a Accounting) *levels {
	return &levels{accounting: a, now: time.Now, known: map[string]level{}, pending: map[string]*levelSearch{}}
}

// checkMember returns an error if the user of the credential is an operator or
// administrator, or if this can't be found out.
func (l *levels) checkMember(ctx context.Context, cred model.Credential, user string) error {
	for {
		l.mu.Lock()
		found, ok := l.known[user]
		if ok && l.now().Before(found.expires) {
			l.mu.Unlock()
			if found.high {
				return auth.NotActingFor("an operator or administrator of the accounting database")
			}
			return nil
		}
		s := l.pending[user]
		if s == nil {
			s = &levelSearch{done: make(chan struct{})}
			l.pending[user] = s
			l.mu.Unlock()
			if err := l.search(ctx, s, cred, user); err != nil {
				return err
			}
			continue
		}
		l.mu.Unlock()
		select {
		case <-s.done:
			if s.err != nil && s.err != errAbandoned {
				return s.err
			}
		case <-ctx.Done():
			return errs.Wrap(context.Cause(ctx), errs.Unavailable, "user not looked up in time")
		}
	}
}

// errAbandoned means that the client of the request that asked has gone.
var errAbandoned = errors.New("abandoned")

// search asks the accounting daemon.
func (l *levels) search(ctx context.Context, s *levelSearch, cred model.Credential, user string) error {
	asking, cancel := context.WithTimeout(ctx, levelTimeout)
	defer cancel()
	begun, high := l.now(), false
	err := l.accounting.List(asking, cred, model.List(usersNamed(user), func(u *model.User) error {
		high = high || u.AdminLevel >= operator
		return nil
	}))
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(s.done)
	delete(l.pending, user)
	switch {
	case err == nil:
		if len(l.known) >= maxLevels {
			clear(l.known)
		}
		l.known[user] = level{high, begun.Add(levelTTL)}
	case ctx.Err() != nil:
		s.err = errAbandoned
		return errs.Wrap(context.Cause(ctx), errs.Unavailable, "user not looked up in time")
	case errors.Is(err, auth.ErrNotInScope): // SCHEDRESTD_TOKEN_MODE=bound
		s.err = &errs.Error{Kind: errs.Denied, Message: "the user's rights in the accounting database can't be found out", Err: err,
			Hint: "at this gateway a token that acts for the members of a group needs the scope slurmdb.read"}
	default:
		s.err = &errs.Error{Kind: errs.Unavailable, Message: "the user's rights in the accounting database can't be found out at present", Err: err,
			Hint: "a token that acts for the members of a group needs an accounting daemon that answers and accepts tokens"}
	}
	return s.err
}
