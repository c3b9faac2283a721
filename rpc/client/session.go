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

// session is a connection to an accounting daemon. It serves only the
// credential that opened it.
type session struct {
	caller  *caller
	nc      net.Conn
	version codec.Version
	latency time.Duration // time that the opening took

	owner   owner
	expires time.Time       // expiry of the token; zero if unknown
	ctx     context.Context // context of the current request
	lent    bool            // an answer is still being read from the session, which is closed afterwards
	reused  bool            // it was idle before this request
	tainted bool            // it may have changes that are neither committed nor rolled back, so it is closed after the request
	since   time.Time       // if reused: when it became idle
	alarm   *time.Timer     // closes it while it is idle
	stop    func() bool     // ends the time limit of the request
	close   func()          // closes the connection
}

// shut closes s, which had a single request.
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
		d.forget() // d may have been restarted with another release
		if f.stage != unspoken && f.stage != silent {
			return nil, f
		}
	}
	_, f := d.descend(try)
	return s, f
}

// openAt opens a session at version v, and sends v in both the header and the
// body. The daemon uses the version in the body, even if it does not support
// that version.
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

// unsaid is the error number that 22.05 sends with every refusal.
const unsaid uint32 = 1<<32 - 1

// refusedOpening distinguishes the refusal of version v from the refusal of a
// credential. A daemon of 22.05 sends the same answer in both cases. But it
// speaks the oldest version. So if v is the oldest version, the daemon has
// refused the credential.
func refusedOpening(f *failure, v codec.Version) *failure {
	switch number := uint32(numberOf(f.err)); {
	case number == fault.ProtocolVersion, number == unsaid && v > codec.Oldest:
		f.stage = unspoken
	case number == unsaid:
		return failed(answered, fault.Of(fault.Authentication, ""))
	}
	return f
}

// call sends a request, and decodes the answer, which must be of type want,
// into answer.
func (s *session) call(t message.Type, body message.Body, want message.Type, answer message.Body) *failure {
	b, err := message.EncodePersistent(s.version, t, body)
	if err != nil {
		return failed(unmade, err)
	}
	return s.exchange(b, want, answer)
}

// exchange sends the message b and reads the answer. If want is AccountingRC,
// only the number 0 is expected, and answer is nil.
func (s *session) exchange(b []byte, want message.Type, answer message.Body) *failure {
	var long *allowance
	if answer != nil {
		long = &allowance{budget: s.caller.cfg.Answers, who: s.owner}
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

// fetch sends b and returns the answer, which must be of type want, without
// decoding it. The answer's memory comes from allowance.
func (s *session) fetch(b []byte, want message.Type, allowance *allowance) (answer *reply, f *failure) {
	done := s.caller.begin(message.Type(binary.BigEndian.Uint16(b[4:])))
	defer func() { done(answer, f) }()
	if n, err := s.nc.Write(b); err != nil {
		return nil, failed(unsent, fmt.Errorf("send request: byte %d of %d: %w", n, len(b), err))
	}
	return s.receive(want, allowance)
}

// receive returns an answer, which must be of type want. The argument in is the
// allowance for a long answer. If in is nil, a long answer is an error.
func (s *session) receive(want message.Type, in *allowance) (*reply, *failure) {
	answer, f := s.caller.receive(s.ctx, s.nc, in, request{})
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

// open parses the type of an answer, which must be want.
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

// verdict returns the error that a short answer of the daemon contains, or nil.
func (s *session) verdict(answer *reply, want message.Type) *failure {
	var rc message.PersistRC
	if err := answer.decode(&rc); err != nil {
		return failed(garbled, err)
	}
	switch {
	case rc.Code != 0:
		return failed(answered, fault.Of(rc.Code, rc.Comment))
	case want == message.AccountingGotList: // the list is empty
	case want != message.AccountingRC:
		return failed(garbled, fmt.Errorf("success without a message %d", want))
	}
	return nil
}
