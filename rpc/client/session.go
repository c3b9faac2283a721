package client

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// A session is a connection to an accounting daemon. It serves only requests
// with the credential that opened it.
type session struct {
	caller  *caller
	nc      net.Conn
	version codec.Version
	latency time.Duration // time from the first message to its answer
	pages   bool          // the daemon accepts a GetAccountingJobPage

	owner     owner
	holder    string          // whose limits count the session
	expires   time.Time       // of the token; zero if unknown
	ctx       context.Context // context of the current request
	turn      *turn           // of the call that uses it; nil if it needs none
	streaming bool            // the answer is still being read; the session is closed afterwards
	reused    bool            // it was idle before this request
	tainted   bool            // it may have changes that are neither committed nor rolled back; it is closed after the request
	idleSince time.Time       // if reused: when it became idle
	idleTimer *time.Timer     // closes it while it is idle
	stop      func() bool     // ends the time limit of the request
	close     func()          // closes the connection
}

// end closes s, and ends the turn of its call.
func (s *session) end() {
	s.close()
	s.turn.release()
}

// discard closes s instead of keeping it for the next request.
func (s *session) discard() {
	s.stop()
	s.close()
}

// openSession opens a session at the newest version that d supports.
func (a *Accounting) openSession(ctx context.Context, d *daemon, cred model.Credential) (*session, *failure) {
	var s *session
	try := func(v codec.Version) (f *failure) {
		s, f = a.openAt(ctx, d, cred, v)
		return f
	}
	if v := d.knownVersion(); v != 0 {
		f := try(v)
		if f == nil || f.stage == stageAnswered || f.stage <= stageConnect {
			return s, f
		}
		d.forgetVersion() // d may have been restarted with another release
		if f.stage != stageVersion && f.stage != stageClosed {
			return nil, f
		}
	}
	_, f := d.descend(try)
	return s, f
}

// openAt opens a session at version v. It sends v in the header and also in the
// body. The daemon uses the version in the body, even if it does not support
// that version.
func (a *Accounting) openAt(ctx context.Context, d *daemon, cred model.Credential, v codec.Version) (*session, *failure) {
	init := &message.PersistInit{Version: v, ClusterName: a.cfg.Cluster, PersistType: message.PersistToAccounting}
	opening, err := message.EncodeOpening(v, a.credentialFunc(ctx, d, cred), init)
	if err != nil {
		return nil, newFailure(stageCreate, err)
	}
	nc, done, f := a.connect(ctx, d, cred)
	if f != nil {
		return nil, f
	}
	s := &session{caller: &a.caller, nc: nc, close: done, version: v, owner: ownerOf(d, cred), holder: holderOf(cred), expires: cred.Expires}
	s.setContext(ctx)
	start := time.Now()
	f = s.open(opening)
	s.latency = time.Since(start)
	if f != nil {
		s.discard()
		if f = classifyRefusal(f, v); errs.KindOf(f.err) == errs.Unauthenticated && f.stage == stageAnswered {
			a.sessions.forget(s.owner)
		}
		return nil, f
	}
	return s, nil
}

// open sends the first message of s, and reads the answer.
func (s *session) open(opening []byte) *failure {
	answer, f := s.fetch(opening, message.AccountingRC, nil, request{whole: true})
	if f != nil {
		return f
	}
	defer answer.release()
	var rc message.PersistRC
	if err := answer.decode(&rc); err != nil {
		return newFailure(stageDecode, err)
	}
	s.pages = rc.Comment == message.PagesOffered
	return nil
}

// unspecifiedRC is the error number that Slurm 22.05 sends with every refusal.
const unspecifiedRC uint32 = 1<<32 - 1

// classifyRefusal determines whether the daemon refused the version v or the
// credential. A daemon of Slurm 22.05 sends the same answer for both, and
// supports only the oldest version. So if v is the oldest version, this answer
// means that the daemon refused the credential.
func classifyRefusal(f *failure, v codec.Version) *failure {
	switch number := uint32(numberOf(f.err)); {
	case number == fault.ProtocolVersion, number == unspecifiedRC && v > codec.Oldest:
		f.stage = stageVersion
	case number == unspecifiedRC:
		return newFailure(stageAnswered, fault.Of(fault.Authentication, ""))
	}
	return f
}

// call sends a request and decodes the daemon's reply into answer. The reply's
// type must be want.
func (s *session) call(t message.Type, body message.Body, want message.Type, answer message.Body) *failure {
	b, err := message.EncodePersistent(s.version, t, body)
	if err != nil {
		return newFailure(stageCreate, err)
	}
	return s.exchange(b, want, answer)
}

// exchange sends the message b and reads the answer. If want is AccountingRC,
// the only valid answer is error number 0, and the answer argument is nil.
func (s *session) exchange(b []byte, want message.Type, answer message.Body) *failure {
	var memory *Allowance
	if answer != nil {
		memory = s.allowance()
	}
	r, f := s.fetch(b, want, memory, request{whole: true})
	if f != nil {
		return f
	}
	defer r.release()
	if answer == nil {
		return nil
	}
	if err := r.decode(answer); err != nil {
		return newFailure(stageDecode, err)
	}
	return nil
}

// allowance returns an allowance for an answer to the session's user.
func (s *session) allowance() *Allowance { return s.caller.cfg.Answers.allowance(s.holder) }

// fetch sends b and returns the answer without decoding it. The answer's type
// must be want. The memory for a long answer comes from allowance.
func (s *session) fetch(b []byte, want message.Type, allowance *Allowance, r request) (answer *reply, f *failure) {
	done := s.caller.observe(message.Type(binary.BigEndian.Uint16(b[4:])))
	defer func() { done(answer, f) }()
	s.limitMessage()
	if n, err := s.nc.Write(b); err != nil {
		return nil, newFailure(stageSend, fmt.Errorf("send request: byte %d of %d: %w", n, len(b), err))
	}
	return s.receive(want, allowance, r)
}

// limitMessage sets the time limit of a message of a call that may be long. The
// time limit of the call stays that of its context.
func (s *session) limitMessage() {
	if s.turn == nil {
		return
	}
	until := time.Now().Add(s.caller.cfg.LongTimeout)
	if deadline, ok := s.ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	s.nc.SetDeadline(until)
	if s.ctx.Err() != nil { // since watch has set its own deadline
		s.nc.SetDeadline(time.Unix(1, 0))
	}
}

// receive reads and returns an answer, under the same rules as fetch.
func (s *session) receive(want message.Type, allowance *Allowance, r request) (*reply, *failure) {
	r.began = s.turn.await(parkDelay)
	defer r.began()
	ctx, cancel := s.ctx, func() {}
	if s.turn != nil {
		ctx, cancel = context.WithTimeout(s.ctx, s.caller.cfg.LongTimeout)
	}
	defer cancel()
	answer, f := s.caller.receive(ctx, s.nc, r, reception{allowance: allowance})
	if f != nil {
		return nil, f
	}
	answer.closeConn, s.streaming = s.end, answer.streaming
	if s.streaming {
		s.turn.keep()
	}
	if f := s.parseType(answer, want); f != nil {
		answer.release()
		return nil, f
	}
	return answer, nil
}

// parseType parses the type of an answer. If the type is not want, or the
// answer is an error number, parseType returns a failure.
func (s *session) parseType(answer *reply, want message.Type) *failure {
	b := answer.first
	if len(b) < 2 {
		return newFailure(stageDecode, codec.ErrShort)
	}
	answer.version, answer.kind, answer.first = s.version, message.Type(binary.BigEndian.Uint16(b)), b[2:]
	switch answer.kind {
	case message.AccountingRC:
		return s.checkRC(answer, want)
	case want:
		return nil
	}
	return newFailure(stageDecode, fmt.Errorf("message %d instead of %d", answer.kind, want))
}

// checkRC checks an answer of type AccountingRC. It returns a failure if the
// answer reports an error, or if it reports success but want requires a message
// with data.
func (s *session) checkRC(answer *reply, want message.Type) *failure {
	var rc message.PersistRC
	if err := answer.decode(&rc); err != nil {
		return newFailure(stageDecode, err)
	}
	switch {
	case rc.Code != 0:
		return newFailure(stageAnswered, fault.Of(rc.Code, rc.Comment))
	case want == message.AccountingGotList:
		return newFailure(stageAnswered, errs.New(errs.Unavailable, "the %s gave up the change", s.caller.kind))
	case want != message.AccountingRC:
		return newFailure(stageDecode, fmt.Errorf("success without a message %d", want))
	}
	return nil
}
