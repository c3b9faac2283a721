package client

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Accounting asks the accounting daemons of one cluster. It is safe for concurrent use.
type Accounting struct {
	caller
	sessions sessions
}

// NewAccounting makes an Accounting of cfg's accounting daemons; nothing is dialled yet.
func NewAccounting(cfg Config) *Accounting {
	return &Accounting{caller: newCaller(cfg, "accounting daemon", cfg.Accounting)}
}

// Vouch asks the accounting daemon whether it accepts the credential, as Client.Vouch does. A
// controller's yes is no answer to that: it may have another key. Neither is a session that is open:
// only an opening is judged. What is asked next is asked in the session that this one opens.
func (a *Accounting) Vouch(ctx context.Context, cred model.Credential) error {
	return a.account(ctx, cred, a.openSession, func(*session) *failure { return nil })
}

// Ping asks every accounting daemon at once whether it answers, as Client.Ping does.
func (a *Accounting) Ping(ctx context.Context, cred model.Credential) ([]model.Ping, error) {
	return a.pingAll(ctx, func(ctx context.Context, _ int, d *daemon) (time.Duration, error) {
		start := time.Now()
		s, f := a.openSession(ctx, d, cred)
		if f != nil {
			return time.Since(start), f
		}
		s.shut()
		return s.latency, nil
	})
}

// Stats is what the accounting daemon counts about itself, and how every daemon answered, as Ping
// has it. One session serves for both.
func (a *Accounting) Stats(ctx context.Context, cred model.Credential) (*model.AccountingStats, []model.Ping, error) {
	answers, failures := make([]message.AccountingStats, len(a.list)), make([]*failure, len(a.list))
	pings, err := a.pingAll(ctx, func(ctx context.Context, i int, d *daemon) (time.Duration, error) {
		start := time.Now()
		s, f := a.openSession(ctx, d, cred)
		if f != nil {
			failures[i] = f
			return time.Since(start), f
		}
		defer s.shut()
		failures[i] = s.call(message.AccountingGetStats, message.Empty{}, message.AccountingGotStats, &answers[i])
		return s.latency, nil
	})
	if err != nil {
		return nil, nil, err
	}
	var tried []*failure
	for i, f := range failures {
		if f == nil {
			return &answers[i].AccountingStats, pings, nil
		}
		if tried = append(tried, f); f.stage == answered {
			break // the daemon has decided
		}
	}
	return nil, nil, a.report(tried)
}

// RecordJobs hands jobs to our accounting daemon; nil: they are on its disk. Sent twice
// they are kept once.
func (a *Accounting) RecordJobs(ctx context.Context, cred model.Credential, jobs []model.Job) error {
	return a.account(ctx, cred, a.session, func(s *session) *failure {
		if s.version != codec.Newest {
			return failed(unspoken, errs.New(errs.Unsupported, "the accounting daemon is not ours: it takes no jobs"))
		}
		return s.call(message.AccountingRecordJobs, &message.RecordJobs{Jobs: jobs}, message.AccountingRC, nil)
	})
}

// account does ask in a session, which get gives it, with the first accounting daemon that answers.
// All that is asked may be asked twice.
func (a *Accounting) account(ctx context.Context, cred model.Credential, get getter, ask func(*session) *failure) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	var tried []*failure
	order := a.order()
	for i, d := range order {
		f := a.inSession(ctx, d, cred, i < len(order)-1, get, ask)
		if f == nil {
			a.answered(d)
			return nil
		}
		if f.stage == unmade {
			return a.report([]*failure{f}) // there is none for the next one either
		}
		if tried = append(tried, f); f.stage == answered || ctx.Err() != nil {
			break
		}
	}
	return a.report(tried)
}

// getter is a way to a session: openSession, or session.
type getter func(context.Context, *daemon, model.Credential) (*session, *failure)

// session gives one that waits for this credential, else a new one. Whoever calls it knows that the
// credential was found genuine in the meantime: the daemon does not look at it again.
func (a *Accounting) session(ctx context.Context, d *daemon, cred model.Credential) (*session, *failure) {
	if s := a.sessions.take(ownerOf(d, cred)); s != nil {
		s.begin(ctx)
		return s, nil
	}
	return a.openSession(ctx, d, cred)
}

func (a *Accounting) inSession(ctx context.Context, d *daemon, cred model.Credential, others bool, get getter, ask func(*session) *failure) *failure {
	ctx, cancel := share(ctx, others)
	defer cancel()
	s, f := get(ctx, d, cred)
	if f != nil {
		return f
	}
	f = ask(s)
	a.end(s, f)
	if f == nil || !s.reused || !broken(f) {
		return f
	}
	// The daemon was started anew, or has had enough of waiting: that says nothing of what it is now.
	if s, f = a.openSession(ctx, d, cred); f != nil {
		return f
	}
	f = ask(s)
	a.end(s, f)
	return f
}

// session is one connection to an accounting daemon. It belongs to the credential that opened it,
// and is used by no other.
type session struct {
	caller  *caller
	nc      net.Conn
	version codec.Version
	latency time.Duration // of the opening

	owner   owner
	expires time.Time       // of the token; zero: not known
	ctx     context.Context // of the question
	lent    bool            // to an answer that is read from it as it is used; it is closed afterwards
	reused  bool            // it waited before this question
	alarm   *time.Timer     // closes it while it waits
	stop    func() bool     // ends the limit of the question
	close   func()          // the connection
}

// shut closes s after its only question.
func (s *session) shut() {
	s.stop()
	s.close()
}

// openSession opens a session at the newest version that d speaks.
func (a *Accounting) openSession(ctx context.Context, d *daemon, cred model.Credential) (*session, *failure) {
	var s *session
	try := func(v codec.Version) (f *failure) {
		s, f = a.openAt(ctx, d, cred, v)
		return f
	}
	if v := d.known(); v != 0 {
		f := try(v)
		if f == nil || f.stage == answered || f.stage <= unreached {
			return s, f
		}
		d.forget() // it may have come back as another release
		if f.stage != unspoken && f.stage != silent {
			return nil, f
		}
	}
	_, f := d.descend(try)
	return s, f
}

// openAt opens a session at version v: in the header and in the body, because what the
// body says is what is spoken, and a version too new there is not refused.
func (a *Accounting) openAt(ctx context.Context, d *daemon, cred model.Credential, v codec.Version) (*session, *failure) {
	init := &message.PersistInit{Version: v, ClusterName: a.cfg.Cluster, PersistType: message.PersistToAccounting}
	opening, err := message.EncodeOpening(v, a.seal(ctx, d, cred), init)
	if err != nil {
		return nil, failed(unmade, err)
	}
	nc, done, err := a.connect(ctx, d, cred)
	if err != nil {
		return nil, failed(unreached, fmt.Errorf("connect to %s: %w", d.name, err))
	}
	s := &session{caller: &a.caller, nc: nc, close: done, version: v, owner: ownerOf(d, cred), expires: cred.Expires}
	s.begin(ctx)
	start := time.Now()
	f := s.exchange(opening, message.AccountingRC, nil)
	s.latency = time.Since(start)
	if f != nil {
		s.shut()
		if f = refusedOpening(f, v); errs.KindOf(f.err) == errs.Unauthenticated && f.stage == answered {
			a.sessions.forget(s.owner)
		}
		return nil, f
	}
	return s, nil
}

// unsaid is the number with which 22.05 refuses, and says no more.
const unsaid uint32 = 1<<32 - 1

// refusedOpening tells the refusal of version v from that of the credential. 22.05 has one answer for
// both; but what it speaks itself is the oldest there is.
func refusedOpening(f *failure, v codec.Version) *failure {
	switch number := uint32(numberOf(f.err)); {
	case number == fault.ProtocolVersion, number == unsaid && v > codec.Oldest:
		f.stage = unspoken
	case number == unsaid:
		return failed(answered, fault.Of(fault.Authentication, ""))
	}
	return f
}

// call sends a request and reads the answer, of type want, into body.
func (s *session) call(t message.Type, body message.Body, want message.Type, answer message.Body) *failure {
	b, err := message.EncodePersistent(s.version, t, body)
	if err != nil {
		return failed(unmade, err)
	}
	return s.exchange(b, want, answer)
}

// exchange sends the message b and reads the answer. When want is AccountingRC,
// number 0 is all there is to read, and answer is nil.
func (s *session) exchange(b []byte, want message.Type, answer message.Body) *failure {
	var long *room
	if answer != nil {
		long = &room{budget: s.caller.cfg.Answers, who: s.owner}
		long.who.daemon = nil
	}
	got, f := s.fetch(b, want, long)
	if f != nil {
		return f
	}
	defer got.release()
	if answer == nil {
		return nil
	}
	if err := got.decode(answer); err != nil {
		return failed(garbled, err)
	}
	return nil
}

// fetch is exchange without the decoding: an answer of type want, in room.
func (s *session) fetch(b []byte, want message.Type, room *room) (*reply, *failure) {
	if n, err := s.nc.Write(b); err != nil {
		return nil, failed(unsent, fmt.Errorf("send request: byte %d of %d: %w", n, len(b), err))
	}
	answer, f := s.caller.receive(s.ctx, s.nc, room, false)
	if f != nil {
		return nil, f
	}
	answer.done, s.lent = s.close, answer.flowing
	if f := s.open(answer, want); f != nil {
		answer.release()
		return nil, f
	}
	return answer, nil
}

// open takes an answer apart, which is to be of type want.
func (s *session) open(answer *reply, want message.Type) *failure {
	b := answer.first
	if len(b) < 2 {
		return failed(garbled, codec.ErrShort)
	}
	answer.version, answer.kind, answer.first = s.version, message.Type(binary.BigEndian.Uint16(b)), b[2:]
	switch answer.kind {
	case message.AccountingRC:
		return s.verdict(answer, want)
	case want:
		return nil
	}
	return failed(garbled, fmt.Errorf("message %d instead of %d", answer.kind, want))
}

// verdict judges the daemon's short answer.
func (s *session) verdict(answer *reply, want message.Type) *failure {
	var rc message.PersistRC
	if err := answer.decode(&rc); err != nil {
		return failed(garbled, err)
	}
	switch {
	case rc.Code != 0:
		return failed(answered, fault.Of(rc.Code, rc.Comment))
	case want != message.AccountingRC:
		return failed(garbled, fmt.Errorf("success without a message %d", want))
	}
	return nil
}
