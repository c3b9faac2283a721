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
// keeper's, and the log has the reason if there is no process.
func (p *Pool) askCredential(w *worker, m *work.AskCredential) error {
	now := time.Now()
	maps.DeleteFunc(w.credentials, func(_ uint64, asked time.Time) bool { return now.Sub(asked) >= outputPause })
	_, tooSoon := w.credentials[m.Client]
	switch {
	case p.gen.Credential == nil:
		return errors.New("sent AskCredential while no process gets credentials")
	case m.Client == 0:
		return errors.New("sent AskCredential for no user")
	case !w.reports.Take(now, 1):
		return errTooOften("AskCredential")
	case tooSoon: // the keeper asks for it again, if it is needed
		return nil
	}
	w.credentials[m.Client] = now
	place := p.credentials.Empty(m.UID)
	if !place.Grow(1) {
		p.logFailure(slog.LevelWarn, "no process gets the credentials of a user", "uid", m.UID, "error", "there are too many such processes")
		return nil
	}
	p.gen.Hold() // until the process has started
	go func() {
		process, err := p.gen.Credential(m.Client)
		p.Do(func() {
			p.gen.Release()
			if err == nil && process.User() != m.UID {
				w.Terminate("sent AskCredential with a false uid")
			}
			if err != nil {
				p.logFailure(slog.LevelWarn, "no process gets the credentials of a user", errs.LogAttrs(errs.HintOf(err), "uid", m.UID, "error", err)...)
			}
		})
		if err == nil {
			process.Wait()
		}
		place.Release()
	}()
	return nil
}
