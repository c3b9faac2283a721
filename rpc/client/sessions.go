package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/model"
	"schedrestd/rpc/message"
	"schedrestd/rpc/tlsconn"
)

const (
	idleTimeout = 60 * time.Second // then an idle session is closed
	staleAfter  = 5 * time.Second  // idle time after which the daemon must show that it still answers
)

// An owner identifies the credential that a session belongs to. A daemon checks
// a token only when the session is opened, and all later requests in the
// session have the privileges of that token's user.
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

// holderOf returns the key of the limits on the requests with a credential.
// Tokens of one user have one share (model.Credential.Holder).
func holderOf(cred model.Credential) string {
	if cred.Holder != "" {
		return cred.Holder
	}
	o := ownerOf(nil, cred)
	return string(o.token[:]) + o.actAs
}

// sessions holds the idle sessions, oldest first. The zero value holds none.
type sessions struct {
	mu          sync.Mutex // guards idle
	idle        []*session
	idleTimeout time.Duration // 0 for idleTimeout
	staleAfter  time.Duration // 0 for staleAfter
}

// get returns the idle session that the owner o used last. It removes this
// session from the idle sessions. If o has no idle session, get returns nil.
func (p *sessions) get(o owner) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		s := p.idle[i]
		if s.owner != o {
			continue
		}
		p.removeLocked(i)
		if !s.expired() {
			s.reused = true
			return s
		}
		s.close()
	}
	return nil
}

// put adds s to the idle sessions. It also ensures that s is closed when s has
// been idle for too long or when its token expires. If s's owner has too many
// idle sessions, put closes the owner's oldest one. Otherwise, if there are too
// many idle sessions in total, put closes the oldest one of the user who has the
// most, so that a user with many tokens does not close the sessions of others.
func (p *sessions) put(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.expired() {
		s.close()
		return
	}
	timeout := cmp.Or(p.idleTimeout, idleTimeout)
	if !s.expires.IsZero() {
		timeout = min(timeout, time.Until(s.expires))
	}
	p.idle, s.idleSince = append(p.idle, s), time.Now()
	s.idleTimer = time.AfterFunc(timeout, func() { p.closeIdle(s) })
	first, count := -1, 0
	ofHolder := map[string]int{}
	for i, other := range p.idle {
		ofHolder[other.holder]++
		if other.owner == s.owner {
			if count++; first < 0 {
				first = i
			}
		}
	}
	switch {
	case count > limit.IdleSessions.Share:
		p.removeLocked(first).close()
	case len(p.idle) > limit.IdleSessions.Total:
		most := slices.Max(slices.Collect(maps.Values(ofHolder)))
		p.removeLocked(slices.IndexFunc(p.idle, func(s *session) bool { return ofHolder[s.holder] == most })).close()
	}
}

// isStale reports whether s had been idle before this request for so long that
// the daemon may be gone.
func (p *sessions) isStale(s *session) bool {
	return time.Since(s.idleSince) >= cmp.Or(p.staleAfter, staleAfter)
}

// trim closes the oldest idle sessions, so that at most n are left.
func (p *sessions) trim(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > max(0, n) {
		p.removeLocked(0).close()
	}
}

// removeLocked removes the i-th session.
func (p *sessions) removeLocked(i int) *session {
	s := p.idle[i]
	s.idleTimer.Stop()
	p.idle = append(p.idle[:i], p.idle[i+1:]...)
	return s
}

// closeIdle closes s if it is idle.
func (p *sessions) closeIdle(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.idle {
		if p.idle[i] == s {
			p.removeLocked(i).close()
			return
		}
	}
}

// expired reports whether the token that opened s has expired.
func (s *session) expired() bool { return !s.expires.IsZero() && !time.Now().Before(s.expires) }

// forget closes the idle sessions of o. It is called if o's token was refused.
func (p *sessions) forget(o owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		if p.idle[i].owner == o {
			p.removeLocked(i).close()
		}
	}
}

// sendRollback ends the transaction of s before s becomes idle. An open
// transaction has two effects. First, slurmdbd's database hides changes that
// others have committed since the transaction's first query. Second, a cluster
// can't be removed, because the tables that the transaction has read can't be
// dropped.
//
// No request should wait for the daemon's answer to the rollback, so
// receiveRollback reads that answer later.
func (s *session) sendRollback() bool {
	b, err := message.EncodePersistent(s.version, message.AccountingFini, &message.AccountingEnd{Commit: rollback})
	if err != nil || s.nc.SetDeadline(time.Now().Add(time.Second)) != nil {
		return false
	}
	if _, err = s.nc.Write(b); err != nil {
		return false
	}
	return s.nc.SetDeadline(time.Time{}) == nil
}

// receiveRollback reads the answer to sendRollback. Its failures have
// stageSend, because the next request has not been sent yet.
func (s *session) receiveRollback() *failure {
	answer, f := s.receive(message.AccountingRC, nil, request{})
	switch {
	case f != nil:
		f.stage = stageSend
		return f
	case !hasNoInput(s.nc):
		f = newFailure(stageSend, errs.New(errs.BadAnswer, "the %s sent more than one answer to a request", s.caller.kind))
	}
	answer.release()
	return f
}

// setContext makes s fail when ctx ends.
func (s *session) setContext(ctx context.Context) { s.ctx, s.stop = ctx, watch(ctx, s.nc) }

// detach makes s fail only when the time limit of its context is over, but not
// when the context is cancelled. It returns false if the context has ended.
func (s *session) detach() bool {
	if !s.stop() {
		return false
	}
	deadline, _ := s.ctx.Deadline()
	ctx, cancel := context.WithDeadline(context.WithoutCancel(s.ctx), deadline)
	s.ctx, s.stop = ctx, func() bool { cancel(); return true }
	return true
}

// releaseSession keeps s for the next request if the last request was answered
// completely. Otherwise it closes s: the rest of the answer could be mistaken
// for the answer to the next request. The f argument is the failure of the last
// request, or nil.
func (a *Accounting) releaseSession(s *session, f *failure) {
	switch {
	case s.streaming:
		s.stop()
		return // the release of the answer closes s
	case f != nil && f.stage == stageReceive && isTimeout(f.err):
		s.stop()
		a.abandon(s)
		return
	}
	whole := !s.tainted && (f == nil || f.stage == stageAnswered && errs.KindOf(f.err) != errs.Unauthenticated)
	if !s.stop() || !whole || !s.sendRollback() {
		s.close()
		return
	}
	s.turn = nil
	a.sessions.put(s)
}

// closedByDaemon reports whether f means that the daemon has closed the
// session, possibly long before the request.
func closedByDaemon(f *failure) bool {
	return (f.stage == stageSend || f.stage == stageClosed || f.stage == stageReceive) &&
		!f.final && !isTimeout(f.err) && !errors.Is(f.err, context.Canceled)
}

// hasNoInput reports whether nc is open and there is nothing to read from it.
// Data that a daemon sent without a request could be mistaken for the next
// answer.
func hasNoInput(nc net.Conn) bool {
	if t, ok := nc.(*tlsconn.Conn); ok {
		return t.HasNoInput()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return true // unknown; if there is input, the next request on nc fails
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	empty := false
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		empty = err == unix.EAGAIN
		return true
	})
	return err == nil && empty
}
