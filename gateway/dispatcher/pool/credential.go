package pool

import (
	"errors"
	"log/slog"
	"maps"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/ipc/work"
)

// askCredential starts a process that gets credentials of a user for whom the keeper
// has vouched. The parent gives the process and the keeper a channel, and the process
// ends by itself, or with the keeper. A worker gets no answer: it waits for the
// keeper's, which learns why there is no process.
func (p *Pool) askCredential(w *worker, m *work.AskCredential) error {
	now := time.Now()
	maps.DeleteFunc(w.credentials, func(_ uint64, c *credential) bool { return !c.starting && now.Sub(c.asked) >= outputPause })
	last := w.credentials[m.Client]
	switch {
	case p.gen.Credential == nil:
		return errors.New("sent AskCredential while no process gets credentials")
	case m.Client&1 == 0: // the parent would end this process (ipc.Vouch)
		return errors.New("sent AskCredential for no user")
	case !w.reports.Take(now, 1), len(w.credentials) >= maxAsked:
		return errTooOften("AskCredential")
	case last != nil && last.starting:
		last.again = true
		return nil
	case last != nil:
		p.gen.NoCredential(m.Client, "the last one has just exited")
		return nil
	}
	c := &credential{asked: now, starting: true}
	place := p.credentials.Empty(m.UID)
	w.credentials[m.Client] = c
	refuse := func(err error) {
		c.starting = false
		p.logFailure(slog.LevelWarn, "no process gets the credentials of a user", errs.LogAttrs(errs.HintOf(err), "uid", m.UID, "error", err)...)
		p.gen.NoCredential(m.Client, err.Error())
	}
	if !place.Grow(1) {
		refuse(errTooManyCredentials)
		return nil
	}
	p.gen.Hold() // until the process has started
	go func() {
		process, err := p.gen.Credential(m.Client)
		p.Do(func() {
			defer p.gen.Release()
			if c.starting = false; err != nil {
				refuse(err)
			} else if process.User() != m.UID {
				w.Terminate("sent AskCredential with a false uid")
			} else if c.again { // it may have broken the protocol before it was ready; otherwise the keeper has it, and ignores this
				p.gen.NoCredential(m.Client, "the last one has just exited")
			}
		})
		if err == nil {
			process.Wait()
		}
		place.Release()
	}()
	return nil
}

// maxAsked is for how many users a worker may ask within outputPause. An honest one has
// few messages in progress (limit.Stamps), and each of them waits for its process.
const maxAsked = 4 * 256

// credential is a process that gets credentials, as far as the worker knows that asked
// for it. It must be used only in the loop.
type credential struct {
	asked    time.Time
	starting bool
	again    bool // the worker has asked again meanwhile
}

var errTooManyCredentials = errs.New(errs.Unavailable, "there are too many such processes").
	WithHint("each ends after a minute without a message; LIMITS.md has the number that a user, and all users together, may have")
