package client

import (
	"fmt"
	"net"
	"testing"

	"schedrestd/internal/limit"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// tokenOf returns one of the tokens of a user, verified or not.
func tokenOf(user string, n int, verified bool) model.Credential {
	cred := model.Credential{Token: fmt.Sprint(user, n), Holder: "from 192.0.2.1"}
	if verified {
		cred.Holder = user
	}
	return cred
}

// TestTokensShareMemory checks that the tokens of a user have one share of the
// memory, and that tokens that are not verified have that of their source, so
// that a forged one takes nothing from the user whom it names.
func TestTokensShareMemory(t *testing.T) {
	t.Parallel()
	b := NewBudget(800)
	if !b.Reserve(tokenOf("ann", 1, true)).Grow(300) || b.Reserve(tokenOf("ann", 2, true)).Grow(200) {
		t.Errorf("%d bytes are free after two tokens of one user", b.Free())
	}
	forged := b.Reserve(tokenOf("ben", 1, false))
	if !forged.Grow(50) || b.bytes.Held("ben") != 0 || b.bytes.Held("from 192.0.2.1") != 50 {
		t.Errorf("%d bytes count for the user whom a forged token names", b.bytes.Held("ben"))
	}
	if !b.Reserve(tokenOf("ben", 1, true)).Grow(150) {
		t.Error("another user got no memory")
	}
	if holderOf(model.Credential{Token: "a"}) == holderOf(model.Credential{Token: "b"}) {
		t.Error("tokens of unknown users have one share")
	}
}

// TestIdleSessionsOfUsers checks that a user with many tokens, each of which has
// idle sessions, does not close the idle session of another user.
func TestIdleSessionsOfUsers(t *testing.T) {
	t.Parallel()
	var p sessions
	var closed []string
	put := func(cred model.Credential) {
		name := cred.Token
		p.put(&session{owner: ownerOf(nil, cred), holder: holderOf(cred), close: func() { closed = append(closed, name) }})
	}
	put(tokenOf("ann", 0, true))
	for n := range limit.IdleSessions.Total + 3 {
		put(tokenOf("ben", n, true))
	}
	if s := p.get(ownerOf(nil, tokenOf("ann", 0, true))); s == nil {
		t.Error("the session of another user was closed")
	}
	if got := fmt.Sprint(closed); got != "[ben0 ben1 ben2 ben3]" {
		t.Errorf("closed: %s", got)
	}
	for _, s := range p.idle {
		s.idleTimer.Stop()
	}
}

// TestSessionOfVerification checks that an answer counts for the user, even if
// the session was opened to verify the token, when it counted for the source.
func TestSessionOfVerification(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() {
		rc, _ := message.EncodePersistent(codec.Newest, message.AccountingRC, &message.PersistRC{})
		theirs.Write(rc)
	}()
	a := NewAccounting(Config{Accounting: []Address{{Name: "dbd", Network: "tcp"}}})
	d := a.list[0]
	unverified := tokenOf("ann", 1, false)
	a.sessions.put(&session{caller: &a.caller, nc: ours, close: func() { ours.Close() }, version: codec.Newest, owner: ownerOf(d, unverified), holder: holderOf(unverified)})
	s, f := a.session(t.Context(), d, tokenOf("ann", 1, true))
	if f != nil {
		t.Fatal(f.err)
	}
	defer s.discard()
	if got := s.allowance().holder; got != "ann" || !s.reused {
		t.Errorf("answers in the session count for %q", got)
	}
}
