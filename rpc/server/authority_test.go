package server

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// accounts maps the names of a machine's users to their ids. For some of these
// users, no token may be accepted.
var accounts = map[string][2]uint32{
	"root":   {0, 0},
	"toor":   {0, 0}, // another name of root
	"sched":  {50, 50},
	"alice":  {1000, 1000},
	"nobody": {65534, 65534},
	"stray":  {1001, 65534},
	"wheel":  {1002, 0},
	"none":   {1<<32 - 1, 1000},
}

// TestWhoActsForWhom checks the identity that results from a token and a name.
// If want is empty, the request must be refused. All refusals must look the
// same to the client, whatever the reason.
func TestWhoActsForWhom(t *testing.T) {
	a := Authority{
		Token: func(token string) (string, time.Time, error) {
			if token == "forged" {
				return "", time.Time{}, errs.New(errs.Unauthenticated, "wrong signature")
			}
			return token, time.Unix(1, 0), nil
		},
		Lookup: func(name string) (uint32, uint32, error) {
			if u, ok := accounts[name]; ok {
				return u[0], u[1], nil
			}
			return 0, 0, errs.New(errs.NotFound, "no user %q", name)
		},
		Super: func(uid uint32) bool { return uid == 0 || uid == 50 },
	}
	const long = "a-name-that-has-more-than-sixty-four-bytes-because-somebody-tried-that"
	tests := []struct {
		token, actAs string
		want         string
	}{
		{"alice", "", "alice"},
		{"alice", "alice", "alice"},
		{"root", "", "root"},
		{"root", "alice", "alice by root"},
		{"sched", "alice", "alice by sched"},
		{"sched", "root", "root by sched"},
		{"toor", "alice", "alice by toor"},
		{"root", "toor", "toor by root"},
		{"forged", "", ""},
		{"forged", "alice", ""},
		{"alice", "root", ""},
		{"alice", "toor", ""},
		{"alice", "sched", ""},
		{"alice", "Alice", ""},
		{"alice", "nosuchuser", ""},
		{"root", "nosuchuser", ""},
		{"root", "Alice", ""},
		{"root", "ALICE", ""},
		{"root", "alice ", ""},
		{"root", "alice\x00", ""},
		{"root", "0", ""},
		{"root", "65534", ""},
		{"root", "4294967295", ""},
		{"root", "-x", ""},
		{"root", long, ""},
		{"root", strings.Repeat("a", 300), ""},
		{"root", "nobody", ""},
		{"root", "stray", ""},
		{"root", "wheel", ""},
		{"root", "none", ""},
		{"nobody", "", ""},
		{"wheel", "", ""},
		{"nosuchuser", "", ""},
		{"0", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.token+" as "+tt.actAs[:min(len(tt.actAs), 20)], func(t *testing.T) {
			id, err := a.Verify(tt.token, tt.actAs)
			got := id.Name
			if id.TokenUser != "" {
				got += " by " + id.TokenUser
			}
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Fatalf("%q, %v; want %q", got, err, tt.want)
			}
			if err != nil {
				if number, text := fault.Number(refused(err)); number != fault.Authentication || text != "the credential is not accepted" {
					t.Errorf("a peer receives %d %q", number, text)
				}
				return
			}
			if u := accounts[id.Name]; id.UID != u[0] || id.GID != u[1] || id.FromKernel || !id.Expires.Equal(time.Unix(1, 0)) {
				t.Errorf("%+v", id)
			}
		})
	}
}

// TestDirectoryIsDown checks the answer to a client whose user can't be looked
// up because the directory service is down. The client must be asked to retry,
// and its credential must not be refused. This applies to a single request, to
// the opening of a persistent connection, and to later requests on that
// connection.
func TestDirectoryIsDown(t *testing.T) {
	var down atomic.Pointer[string] // user that the directory service can't look up now
	lookup := func(name string) (uint32, uint32, error) {
		if out := down.Load(); out != nil && *out == name {
			return 0, 0, errs.New(errs.Unavailable, "getent did not answer")
		}
		u := accounts[name]
		return u[0], u[1], nil
	}
	a := Authority{
		Token:  func(string) (string, time.Time, error) { return "root", time.Time{}, nil },
		Lookup: lookup, Super: func(uid uint32) bool { return uid == 0 },
	}
	f := start(t, &Server{
		Verify:   a.Verify,
		Handlers: map[message.Type]Handler{message.RequestPing: whoami},
		Persistent: map[message.Type]Handler{message.AccountingGetStats: func(context.Context, *Request) (message.Type, message.Body, error) {
			return message.AccountingRC, &message.PersistRC{}, nil
		}},
	})
	stats, err := message.EncodePersistent(codec.V2411, message.AccountingGetStats, message.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	as := message.Credential{Plugin: message.PluginJWT, Token: "root's", ActAs: "alice"}
	for _, name := range []string{"root", "alice"} {
		down.Store(nil)
		open := f.dial(t, "tcp")
		if rc, err := persistent(t, open, codec.V2411, opening(t, codec.V2411, as, codec.V2411)); err != nil || rc.Code != 0 {
			t.Fatalf("%+v, %v", rc, err)
		}
		down.Store(&name)
		answer, err := f.ask(t, "tcp", encode(t, codec.V2411, message.RequestPing, &as, message.Empty{}))
		if err != nil || fault.Of(code(t, answer), "").Kind != errs.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
		rc, err := persistent(t, f.dial(t, "tcp"), codec.V2411, opening(t, codec.V2411, as, codec.V2411))
		if err != nil || fault.Of(rc.Code, "").Kind != errs.Unavailable || strings.Contains(rc.Comment, "getent") {
			t.Errorf("%s, at the opening: %+v, %v", name, rc, err)
		}
		if rc, err = persistent(t, open, codec.V2411, stats); err != nil || fault.Of(rc.Code, "").Kind != errs.Unavailable {
			t.Errorf("%s, later: %+v, %v", name, rc, err)
		}
	}
	if log := f.log.String(); !strings.Contains(log, "getent did not answer") {
		t.Errorf("the log does not say why: %s", log)
	}
}

// TestNamesThatAreNumbers checks names that NSS could interpret as a number, an
// option or another name. Verify must refuse them. The test uses the function
// that the daemons use to look up users.
func TestNamesThatAreNumbers(t *testing.T) {
	a := Authority{
		Token: func(string) (string, time.Time, error) { return "root", time.Time{}, nil },
		Lookup: func(name string) (uint32, uint32, error) {
			u, err := nss.LookupUser(name)
			return u.UID, u.GID, err
		},
		Super: func(uid uint32) bool { return uid == 0 },
	}
	if _, err := a.Verify("", ""); err != nil {
		t.Skip("this machine has no root:", err)
	}
	for _, name := range []string{"0", "1", "65534", "+0", "-0", "-x", "ROOT", "Root", "root:", "root,", " root", "uid0"} {
		if id, err := a.Verify("", name); err == nil {
			t.Errorf("%q is %+v", name, id)
		}
	}
}

// serverWithExpiringToken returns a server that accepts any token until the
// caller calls end. Each verification of a token sends a value to verified.
func serverWithExpiringToken(t *testing.T, s *Server) (f *fixture, verified chan struct{}, end func()) {
	t.Helper()
	var expired atomic.Bool
	expires := time.Now().Add(time.Hour)
	verified = make(chan struct{}, 10)
	s.Verify = func(string, string) (Identity, error) {
		defer func() { verified <- struct{}{} }()
		if expired.Load() {
			return Identity{}, errors.New("ended")
		}
		return Identity{UID: 100, GID: 100, Expires: expires}, nil
	}
	return start(t, s), verified, func() { expired.Store(true) }
}

// TestTokenEndsWhileARequestIsSent checks a token that expires after the header
// of a request has arrived. The server must answer the request, however long
// the rest of the request takes to arrive.
func TestTokenEndsWhileARequestIsSent(t *testing.T) {
	f, verified, end := serverWithExpiringToken(t, &Server{
		Handlers: map[message.Type]Handler{message.RequestSubmitBatchJob: whoami},
		Limit:    func(message.Type, Identity) int { return 1 << 20 },
	})
	nc := f.dial(t, "tcp")
	b := encode(t, codec.V2411, message.RequestSubmitBatchJob, &token, &message.TokenRequest{Username: strings.Repeat("x", 2*maxFront)})
	if _, err := nc.Write(b[:maxFront+100]); err != nil {
		t.Fatal(err)
	}
	<-verified
	end()
	if _, err := nc.Write(b[maxFront+100:]); err != nil {
		t.Fatal(err)
	}
	answer, err := wire.Read(nc, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := message.ParseFrame(answer); err != nil || got.Header.Type != message.ResponseAuthToken {
		t.Errorf("answer %d, %v", got.Header.Type, err)
	}
	if answer, err := f.ask(t, "tcp", b); err != nil || code(t, answer) != fault.Authentication {
		t.Errorf("a request after the token's end: %v", err)
	}
}

// TestTokenEndsWhileARequestIsAnswered checks a token that expires on a
// persistent connection. The request in progress must be answered, and the next
// must be refused.
func TestTokenEndsWhileARequestIsAnswered(t *testing.T) {
	arrived, proceed := make(chan struct{}), make(chan struct{})
	f, _, end := serverWithExpiringToken(t, &Server{Persistent: map[message.Type]Handler{
		message.AccountingGetStats: func(context.Context, *Request) (message.Type, message.Body, error) {
			arrived <- struct{}{}
			<-proceed
			return message.AccountingRC, &message.PersistRC{Comment: "fine"}, nil
		},
	}})
	nc := f.dial(t, "tcp")
	if rc, err := persistent(t, nc, codec.V2411, opening(t, codec.V2411, token, codec.V2411)); err != nil || rc.Code != 0 {
		t.Fatalf("%+v, %v", rc, err)
	}
	b, err := message.EncodePersistent(codec.V2411, message.AccountingGetStats, message.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write(b); err != nil {
		t.Fatal(err)
	}
	<-arrived
	end()
	close(proceed)
	answer, err := wire.Read(nc, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var rc message.PersistRC
	if typ := message.Type(binary.BigEndian.Uint16(answer)); typ != message.AccountingRC {
		t.Fatalf("message %d", typ)
	}
	if err := message.DecodeBody(codec.V2411, message.AccountingRC, answer[2:], &rc); err != nil || rc.Comment != "fine" {
		t.Errorf("the request that was under way: %+v, %v", rc, err)
	}
	if rc, err := persistent(t, nc, codec.V2411, b); err != nil || rc.Code != fault.Authentication {
		t.Errorf("the next one: %+v, %v", rc, err)
	}
	if _, err := nc.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("stays open: %v", err)
	}
}

// TestNoTokenInTheLog checks that a token that was sent as a user name is not
// logged.
func TestNoTokenInTheLog(t *testing.T) {
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJhbm4ifQ.c2lnbmF0dXJlLXRoYXQtaXMtZ29vZA"
	a := Authority{
		Token: func(user string) (string, time.Time, error) { return user, time.Time{}, nil },
		Lookup: func(name string) (uint32, uint32, error) {
			if name == "ann" || name == "root" {
				return uint32(len(name)), 1, nil
			}
			return 0, 0, errs.New(errs.NotFound, "no user %q", name)
		},
		Super: func(uid uint32) bool { return uid == 4 },
	}
	for _, tt := range [][2]string{{jwt, ""}, {"ann", jwt}, {"root", jwt}, {"root", jwt[3:]}, {"root", strings.Repeat(jwt, 20)}} {
		_, err := a.Verify(tt[0], tt[1])
		if err == nil || strings.Contains(err.Error(), "c2lnbm") || strings.Contains(err.Error(), jwt[3:]) {
			t.Errorf("%v", err)
		}
	}
	if _, err := a.Verify("ann", "bob"); err == nil || !strings.Contains(err.Error(), `"ann" may not act for "bob"`) {
		t.Errorf("%v", err)
	}
}
