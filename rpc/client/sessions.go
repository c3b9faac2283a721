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
	"schedrestd/rpc/message"
)

// Limits of the idle sessions. They are low, because Slurm's daemon up to 24.11
// serves only a hundred connections at a time, including idle ones. All further
// connections wait.
const (
	maxIdle    = 16               // for the process
	maxIdleOne = 4                // for one daemon and one credential
	idleFor    = 60 * time.Second // then an idle session is closed
	restFor    = 5 * time.Second  // from then on, an idle session gets only part of a call's time
)

// owner identifies the credential that a session belongs to. A daemon checks a
// token only when the session is opened. Every later request in the session has
// the privileges of the same user.
type owner struct {
	daemon *daemon
	token  [sha256.Size]byte // hash of the token
	actAs  string
	uid    int // uid of this process, if there is no token
}

func ownerOf(d *daemon, cred model.Credential) owner {
	o := owner{daemon: d, token: sha256.Sum256([]byte(cred.Token)), actAs: cred.ActAs, uid: -1}
	if cred.Local() {
		o.uid = os.Geteuid()
	}
	return o
}

// sessions has the idle sessions, oldest first. The zero value has none.
type sessions struct {
	mu   sync.Mutex
	idle []*session
	wait time.Duration // 0 for idleFor
	rest time.Duration // 0 for restFor
}

// take removes from the idle sessions the one that o used last, and returns it.
// If o has no idle session, take returns nil.
func (p *sessions) take(o owner) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		s := p.idle[i]
		if s.owner != o {
			continue
		}
		p.remove(i)
		if !s.ended() {
			s.reused = true
			return s
		}
		s.close()
	}
	return nil
}

// put adds s to the idle sessions. It closes s when s has been idle for too
// long or its token expires. If there are too many idle sessions, it closes the
// one that was idle longest.
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

// rested reports whether s was idle for so long before this request that the
// daemon may be gone.
func (p *sessions) rested(s *session) bool {
	return s.reused && time.Since(s.since) >= cmp.Or(p.rest, restFor)
}

// remove removes the i-th session. The caller holds the lock.
func (p *sessions) remove(i int) *session {
	s := p.idle[i]
	s.alarm.Stop()
	p.idle = append(p.idle[:i], p.idle[i+1:]...)
	return s
}

// drop closes s if it is idle.
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

// ended reports whether the token that opened s has expired.
func (s *session) ended() bool { return !s.expires.IsZero() && !time.Now().Before(s.expires) }

// forget closes the idle sessions of o, whose token was refused.
func (p *sessions) forget(o owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		if p.idle[i].owner == o {
			p.remove(i).close()
		}
	}
}

// rest ends the transaction of s before s becomes idle. In an open transaction,
// slurmdbd's database hides changes that others have committed since the first
// query of the transaction. An open transaction also prevents the removal of a
// cluster, because tables that were read in the transaction can't be dropped.
// rest does not read the daemon's answer, so that no request waits for it:
// settle reads it later.
func (s *session) rest() bool {
	b, err := message.EncodePersistent(s.version, message.AccountingFini, &message.AccountingEnd{Commit: drop})
	if err != nil || s.nc.SetDeadline(time.Now().Add(time.Second)) != nil {
		return false
	}
	if _, err = s.nc.Write(b); err != nil {
		return false
	}
	return s.nc.SetDeadline(time.Time{}) == nil
}

// settle reads the answer to rest. All its failures have the stage unsent,
// because the next request was not sent yet.
func (s *session) settle() *failure {
	answer, f := s.receive(message.AccountingRC, nil)
	switch {
	case f != nil:
		f.stage = unsent
		return f
	case !quiet(s.nc):
		f = failed(unsent, errs.New(errs.BadAnswer, "more than one answer to a request"))
	}
	answer.release()
	return f
}

// begin makes s fail when ctx ends.
func (s *session) begin(ctx context.Context) { s.ctx, s.stop = ctx, watch(ctx, s.nc) }

// end stores s for its next request if the last request was answered
// completely. Otherwise it closes s, so that the rest of an answer is not taken
// for the next answer. f is the failure of the last request, or nil.
func (a *Accounting) end(s *session, f *failure) {
	if s.lent {
		s.stop()
		return // the release of the answer closes s
	}
	whole := !s.tainted && (f == nil || f.stage == answered && errs.KindOf(f.err) != errs.Unauthenticated)
	if !s.stop() || !whole || !s.rest() {
		s.close()
		return
	}
	a.sessions.put(s)
}

// broken reports whether f is the failure of a session that the daemon has
// closed, perhaps long ago.
func broken(f *failure) bool {
	return (f.stage == unsent || f.stage == silent || f.stage == unanswered) &&
		!late(f.err) && !errors.Is(f.err, context.Canceled)
}

// quiet reports whether nc is open and has nothing to read. If a daemon has
// sent something without a request, its next answer would be misunderstood.
func quiet(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return true // unknown; the next request on nc fails if nc is not quiet
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
