package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/model"
)

// Bounds of the sessions that wait for their next question. They are few: Slurm's daemon serves a
// hundred connections at once up to 24.11, those that say nothing among them, and lets everybody else
// wait.
const (
	maxIdle    = 16               // of a process
	maxIdleOne = 4                // of those, with one daemon for one credential
	idleFor    = 60 * time.Second // then it is closed
	restFor    = 5 * time.Second  // from then on it is not trusted with all of the time that there is
)

// owner is whose a session is. A daemon looks at a token when the session is opened, and never again:
// what is asked in it is asked as whoever had that token, exactly, and in that name.
type owner struct {
	daemon *daemon
	token  [sha256.Size]byte // its hash
	actAs  string
	uid    int // of this process, when there is no token
}

func ownerOf(d *daemon, cred model.Credential) owner {
	o := owner{daemon: d, token: sha256.Sum256([]byte(cred.Token)), actAs: cred.ActAs, uid: -1}
	if cred.Local() {
		o.uid = os.Geteuid()
	}
	return o
}

// sessions are those that wait, the one that has waited longest first. The zero sessions has none.
type sessions struct {
	mu   sync.Mutex
	idle []*session
	wait time.Duration // 0: idleFor
	rest time.Duration // 0: restFor
}

// take gives the session of o that was used last, for one question; nil: there is none.
func (p *sessions) take(o owner) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		s := p.idle[i]
		if s.owner != o {
			continue
		}
		p.remove(i)
		if !s.ended() && quiet(s.nc) {
			s.reused = true
			return s
		}
		s.close()
	}
	return nil
}

// put keeps s for its next question, until it has waited long enough or its token ends. Where
// there are too many, that which has waited longest is closed.
func (p *sessions) put(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.ended() {
		s.close()
		return
	}
	wait := cmp.Or(p.wait, idleFor)
	if !s.expires.IsZero() {
		wait = min(wait, time.Until(s.expires))
	}
	p.idle, s.since = append(p.idle, s), time.Now()
	s.alarm = time.AfterFunc(wait, func() { p.drop(s) })
	first, same := -1, 0
	for i, other := range p.idle {
		if other.owner == s.owner {
			if same++; first < 0 {
				first = i
			}
		}
	}
	switch {
	case same > maxIdleOne:
		p.remove(first).close()
	case len(p.idle) > maxIdle:
		p.remove(0).close()
	}
}

// rested tells whether s has waited so long that nobody may be at its other end.
func (p *sessions) rested(s *session) bool {
	return s.reused && time.Since(s.since) >= cmp.Or(p.rest, restFor)
}

// remove takes out the i-th. The caller holds the lock.
func (p *sessions) remove(i int) *session {
	s := p.idle[i]
	s.alarm.Stop()
	p.idle = append(p.idle[:i], p.idle[i+1:]...)
	return s
}

// drop closes s if it waits.
func (p *sessions) drop(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.idle {
		if p.idle[i] == s {
			p.remove(i).close()
			return
		}
	}
}

// ended tells whether the token that opened s is no longer good.
func (s *session) ended() bool { return !s.expires.IsZero() && !time.Now().Before(s.expires) }

// forget closes those of o: its token is refused by now.
func (p *sessions) forget(o owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		if p.idle[i].owner == o {
			p.remove(i).close()
		}
	}
}

// begin makes s break when ctx ends.
func (s *session) begin(ctx context.Context) { s.ctx, s.stop = ctx, watch(ctx, s.nc) }

// end closes s, or keeps it for the next question: only when the last one has its whole answer, so
// that nothing can come that would be taken for another's. f is what became of that.
func (a *Accounting) end(s *session, f *failure) {
	if s.lent {
		s.stop()
		return // it is closed with the answer
	}
	whole := !s.tainted && (f == nil || f.stage == answered && errs.KindOf(f.err) != errs.Unauthenticated)
	if !s.stop() || !whole || s.nc.SetDeadline(time.Time{}) != nil {
		s.close()
		return
	}
	a.sessions.put(s)
}

// broken tells whether f is that of a session whose daemon has left it, perhaps long ago.
func broken(f *failure) bool {
	return (f.stage == unsent || f.stage == silent || f.stage == unanswered) &&
		!late(f.err) && !errors.Is(f.err, context.Canceled)
}

// quiet tells whether nc is open and has nothing to read: a daemon that says something unasked has
// left, or is out of step.
func quiet(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return true // its first question finds out
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	silence := false
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		silence = err == unix.EAGAIN
		return true
	})
	return err == nil && silence
}
