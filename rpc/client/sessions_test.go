package client_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// A keeper is an accounting daemon that keeps sessions open. It accepts tokens
// that begin with "good". It answers a request for trackable resources with a
// resource whose name is the user of the session.
type keeper struct {
	client.Address
	act func(nc net.Conn, question int) (goOn bool) // called before the answer; nil to continue

	mu      sync.Mutex
	opened  []string            // users that opened sessions, including refused ones
	open    map[net.Conn]string // open sessions, with their users
	news    string              // appended to the resource's name, from the next transaction on
	ends    int                 // number of ended transactions
	refuses int                 // number of the transaction whose end is answered with an error; 0 for none
	silent  int                 // number of the transaction whose end is not answered; 0 for none
}

func newKeeper(t *testing.T) *keeper {
	k := &keeper{open: map[net.Conn]string{}}
	k.Address = client.Address{Name: "dbd", Network: "tcp", Address: sockettest.Serve(t, "tcp", k.serve)}
	t.Cleanup(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		for nc := range k.open {
			nc.Close()
		}
	})
	return k
}

func (k *keeper) serve(nc net.Conn) {
	b, err := wire.Read(nc, 1<<20)
	if err != nil || len(b) < 2 {
		return
	}
	f, err := message.ParseFrame(b[2:])
	if err != nil {
		return
	}
	user, v := f.Credential.Token+"/"+f.Credential.ActAs, f.Header.Version
	k.mu.Lock()
	k.opened = append(k.opened, user)
	k.mu.Unlock()
	rc := &message.PersistRC{Info: 6500}
	if len(user) < 4 || user[:4] != "good" {
		rc.Code = fault.Authentication
	}
	b, _ = message.EncodePersistent(v, message.AccountingRC, rc)
	nc.Write(b)
	if rc.Code != 0 {
		return
	}
	k.mu.Lock()
	k.open[nc] = user
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.open, nc)
	}()
	var snapshot *string // news of the transaction
	for question := 0; ; question++ {
		b, err := wire.Read(nc, 1<<20)
		for err == nil && binary.BigEndian.Uint16(b) == uint16(message.AccountingFini) {
			snapshot = nil
			k.mu.Lock()
			k.ends++
			silent := k.ends == k.silent
			rc := &message.PersistRC{}
			if k.ends == k.refuses {
				rc.Code = fault.AccessDenied
			}
			k.mu.Unlock()
			b, _ = message.EncodePersistent(v, message.AccountingRC, rc)
			if !silent {
				nc.Write(b)
			}
			b, err = wire.Read(nc, 1<<20)
		}
		if err != nil {
			return
		}
		asked := message.Type(binary.BigEndian.Uint16(b))
		if asked != message.AccountingGetTRES && asked != message.AccountingGetStats || k.act != nil && !k.act(nc, question) || asked == message.AccountingGetStats {
			return
		}
		if snapshot == nil {
			k.mu.Lock()
			news := k.news
			k.mu.Unlock()
			snapshot = &news
		}
		body := message.TRESList{ListResponse: message.ListResponse[model.TRES]{Records: codec.Stream[model.TRES]{List: []model.TRES{{Name: user + *snapshot}}}}}
		b, _ = message.EncodePersistent(v, message.AccountingGotTRES, &body)
		nc.Write(b)
	}
}

// openings returns the users who opened sessions since the last call.
func (k *keeper) openings() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	opened := k.opened
	k.opened = nil
	return opened
}

func (k *keeper) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.open)
}

func (k *keeper) ended() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ends
}

// wait waits until n sessions are open.
func (k *keeper) wait(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); k.count() != n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d sessions are open, want %d", k.count(), n)
		}
	}
}

// ask sends a request with the credential cred, and returns the user that the
// daemon's answer names.
func ask(a *client.Accounting, cred model.Credential) (user string, err error) {
	err = client.Records(context.Background(), a, cred, model.TRESFilter{}, func(r *model.TRES) error { user = r.Name; return nil })
	return user, err
}

func mustAsk(t *testing.T, a *client.Accounting, cred model.Credential) {
	t.Helper()
	if user, err := ask(a, cred); err != nil || user != cred.Token+"/"+cred.ActAs {
		t.Fatalf("asked as %s/%s, answered as %q, %v", cred.Token, cred.ActAs, user, err)
	}
}

func accountingOf(addresses ...client.Address) *client.Accounting {
	return client.NewAccounting(client.Config{Accounting: addresses})
}

// TestSessionIsKept checks that a session serves further requests with the same
// token and the same user name. It must serve no other requests.
func TestSessionIsKept(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	a := accountingOf(k.Address)
	good, other, acting := model.Credential{Token: "good"}, model.Credential{Token: "good2"}, model.Credential{Token: "good", ActAs: "bob"}
	for _, tt := range []struct {
		cred   model.Credential
		opened int
	}{{good, 1}, {good, 0}, {other, 1}, {good, 0}, {acting, 1}, {acting, 0}, {other, 0}, {good, 0}} {
		mustAsk(t, a, tt.cred)
		if opened := k.openings(); len(opened) != tt.opened {
			t.Errorf("%s/%s: sessions opened: %q, want %d", tt.cred.Token, tt.cred.ActAs, opened, tt.opened)
		}
	}
}

// TestTransactionEnds checks that an idle session has no open transaction, so
// that its next request sees the changes that others have made. If the daemon
// refuses to end the transaction, a new session must be opened.
func TestTransactionEnds(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	k.refuses = 3
	a := accountingOf(k.Address)
	good := model.Credential{Token: "good"}
	for i, tt := range []struct {
		news   string
		opened int
	}{{"", 1}, {" changed", 0}, {" twice", 0}, {" after a refusal", 1}, {" at last", 0}} {
		k.mu.Lock()
		k.news = tt.news
		k.mu.Unlock()
		user, err := ask(a, good)
		if opened := len(k.openings()); err != nil || user != "good/"+tt.news || opened != tt.opened {
			t.Errorf("%q: got %q, %v, with %d sessions opened, want %d", tt.news, user, err, opened, tt.opened)
		}
		for end := time.Now().Add(30 * time.Second); k.ended() != i+1; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d transactions were ended, want %d", k.ended(), i+1)
			}
		}
	}
}

// TestForgedBesideASession checks that a forged token can't use the session of
// a valid token.
func TestForgedBesideASession(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	a := accountingOf(k.Address)
	good := model.Credential{Token: "good", ActAs: "ann"}
	mustAsk(t, a, good)
	for _, cred := range []model.Credential{{Token: "forged", ActAs: "ann"}, {Token: "forged"}, {Token: " good", ActAs: "ann"}, {ActAs: "ann"}} {
		if user, err := ask(a, cred); err == nil || user != "" {
			t.Errorf("%q in the name of %q was answered as %q", cred.Token, cred.ActAs, user)
		} else if !cred.Local() && errs.KindOf(err) != errs.Unauthenticated {
			t.Errorf("%q: %v", cred.Token, err)
		}
	}
	k.openings()
	mustAsk(t, a, good)
	if opened := k.openings(); len(opened) != 0 {
		t.Errorf("the good one's session was lost: %q", opened)
	}
}

// TestVerifyOpens checks that Verify opens a new session. An open session would
// not show whether the token is still accepted.
func TestVerifyOpens(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	a := accountingOf(k.Address)
	good := model.Credential{Token: "good"}
	for i := range 3 {
		if err := a.Verify(context.Background(), good); err != nil {
			t.Fatal(err)
		}
		mustAsk(t, a, good)
		if opened := k.openings(); len(opened) != 1 {
			t.Errorf("call %d: sessions opened: %q", i, opened)
		}
	}
}

// TestRefusedTokenLosesItsSessions checks a token that the daemon has refused.
// No later request with that token may use a session that was opened before.
func TestRefusedTokenLosesItsSessions(t *testing.T) {
	t.Parallel()
	good, refuse := model.Credential{Token: "good"}, false
	var mu sync.Mutex
	closed := make(chan struct{}, 2)
	address := concurrentOpener(t, func(nc net.Conn, v codec.Version) {
		mu.Lock()
		rc := &message.PersistRC{Info: 6500}
		if refuse {
			rc.Code = fault.Authentication
		}
		mu.Unlock()
		b, _ := message.EncodePersistent(v, message.AccountingRC, rc)
		nc.Write(b)
		if rc.Code == 0 {
			io.Copy(io.Discard, nc) // an idle session ends its transaction
			closed <- struct{}{}
		}
	})
	a := accountingOf(address)
	if err := a.Verify(context.Background(), good); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	refuse = true
	mu.Unlock()
	if err := a.Verify(context.Background(), good); errs.KindOf(err) != errs.Unauthenticated {
		t.Fatalf("got %v", err)
	}
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Error("the session is still open")
	}
}

// concurrentOpener does the same as opener, but serves several connections
// concurrently.
func concurrentOpener(t *testing.T, act func(nc net.Conn, v codec.Version)) client.Address {
	return client.Address{Name: "dbd", Network: "tcp", Address: sockettest.Serve(t, "tcp", func(nc net.Conn) {
		if b, err := wire.Read(nc, 1<<20); err == nil && len(b) > 2 {
			f, _ := message.ParseFrame(b[2:])
			act(nc, f.Header.Version)
		}
	})}
}

// TestSessionEnds checks that a session is closed when its token expires, or
// when it has been idle for too long.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		wait time.Duration
		cred model.Credential
	}{
		{name: "the token expires", cred: model.Credential{Token: "good", Expires: time.Now().Add(2 * time.Second)}},
		{name: "the token has already expired", cred: model.Credential{Token: "good", Expires: time.Now().Add(-time.Second)}},
		{name: "the session is idle for too long", wait: 10 * time.Millisecond, cred: model.Credential{Token: "good", Expires: time.Now().Add(time.Hour)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newKeeper(t)
			a := accountingOf(k.Address)
			a.SetIdleTimeout(tt.wait)
			mustAsk(t, a, tt.cred)
			k.wait(t, 0)
			k.openings()
			mustAsk(t, a, tt.cred) // a daemon with another clock may still accept the token
			if opened := k.openings(); len(opened) != 1 {
				t.Errorf("sessions opened: %q", opened)
			}
		})
	}
}

// TestSessionBroken checks a session that breaks at its second request. If the
// daemon closes the connection, the client must repeat the request once, in a
// new session. If the daemon answers with garbage, the request must fail.
func TestSessionBroken(t *testing.T) {
	t.Parallel()
	good := model.Credential{Token: "good"}
	for _, tt := range []struct {
		name   string
		act    func(nc net.Conn, question int) bool
		opened int // number of sessions that the second request opens
		kind   errs.Kind
	}{
		{name: "closes at the second request", act: func(_ net.Conn, n int) bool { return n == 0 }, opened: 1},
		{name: "closes in its answer", opened: 1, act: func(nc net.Conn, n int) bool {
			if n > 0 {
				nc.Write([]byte{0, 0, 0, 99, 5})
			}
			return n == 0
		}},
		{name: "sends garbage", kind: errs.BadAnswer, act: func(nc net.Conn, n int) bool {
			if n > 0 {
				nc.Write([]byte{0, 0, 0, 3, 1, 2, 3})
			}
			return n == 0
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newKeeper(t)
			k.act = tt.act
			a := accountingOf(k.Address)
			mustAsk(t, a, good)
			k.openings()
			if _, err := ask(a, good); errs.KindOf(err) != tt.kind && (err != nil || tt.kind != 0) {
				t.Errorf("got %v", err)
			}
			if opened := k.openings(); len(opened) != tt.opened {
				t.Errorf("sessions opened: %q", opened)
			}
		})
	}
	t.Run("sends garbage and stays open", func(t *testing.T) {
		k, done := newKeeper(t), make(chan struct{})
		defer close(done)
		k.act = func(nc net.Conn, n int) bool {
			if n > 0 {
				nc.Write([]byte{0, 0, 0, 3, 1, 2, 3})
				<-done
			}
			return n == 0
		}
		a := accountingOf(k.Address)
		mustAsk(t, a, good)
		if _, err := ask(a, good); errs.KindOf(err) != errs.BadAnswer {
			t.Errorf("got %v", err)
		}
		k.openings()
		mustAsk(t, a, good) // in another session
		if opened := k.openings(); len(opened) != 1 {
			t.Errorf("sessions opened: %q", opened)
		}
	})
	t.Run("always closes immediately", func(t *testing.T) {
		k := newKeeper(t)
		k.act = func(net.Conn, int) bool { return false }
		if _, err := ask(accountingOf(k.Address), good); errs.KindOf(err) != errs.BadAnswer {
			t.Errorf("got %v", err)
		}
		if opened := k.openings(); len(opened) != 1 {
			t.Errorf("sessions opened: %q", opened)
		}
	})
	t.Run("sends an unrequested message", func(t *testing.T) {
		k := newKeeper(t)
		sent := make(chan struct{}, 1)
		k.act = func(nc net.Conn, _ int) bool {
			body := message.TRESList{ListResponse: message.ListResponse[model.TRES]{Records: codec.Stream[model.TRES]{List: []model.TRES{{Name: "good/"}}}}}
			b, _ := message.EncodePersistent(codec.Newest, message.AccountingGotTRES, &body)
			nc.Write(b) // the answer follows
			time.AfterFunc(100*time.Millisecond, func() { sent <- struct{}{} })
			return true
		}
		a := accountingOf(k.Address)
		mustAsk(t, a, good)
		<-sent
		k.openings()
		mustAsk(t, a, good)
		if opened := k.openings(); len(opened) != 1 {
			t.Errorf("sessions opened: %q", opened)
		}
	})
}

// TestGivenUpSession checks a request that was abandoned. Its answer must never
// be taken for the answer to another request.
func TestGivenUpSession(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	asked, proceed := make(chan struct{}), make(chan struct{})
	k.act = func(_ net.Conn, question int) bool {
		if question == 1 {
			close(asked)
			<-proceed
		}
		return true
	}
	a := accountingOf(k.Address)
	good := model.Credential{Token: "good"}
	mustAsk(t, a, good)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-asked; cancel() }()
	if err := client.Records(ctx, a, good, model.TRESFilter{}, func(*model.TRES) error { return nil }); err == nil {
		t.Error("answered")
	}
	close(proceed)
	k.openings()
	mustAsk(t, a, good)
	if opened := k.openings(); len(opened) != 1 {
		t.Errorf("sessions opened: %q", opened)
	}
}

// TestSessionsAreBounded checks the number of concurrent calls, of one user and
// in total, and that only a few sessions stay open.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		cred             func(i int) model.Credential
		concurrent, idle int
	}{
		{"one token", func(int) model.Credential { return model.Credential{Token: "good"} }, client.MaxHolderCalls, client.MaxIdlePerOwner},
		{"several tokens of a user", func(i int) model.Credential {
			return model.Credential{Token: fmt.Sprint("good", i), Holder: "good"}
		}, client.MaxHolderCalls, client.MaxIdle},
		{"several users", func(i int) model.Credential { return model.Credential{Token: fmt.Sprint("good", i)} }, client.MaxSessions, client.MaxIdle},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newKeeper(t)
			a := accountingOf(k.Address)
			full := make(chan struct{}) // closed when as many calls as permitted have been sent
			var once sync.Once
			var current, most atomic.Int32
			k.act = func(net.Conn, int) bool {
				n := current.Add(1)
				defer current.Add(-1)
				if n > most.Load() {
					most.Store(n)
				}
				if int(n) == tt.concurrent {
					once.Do(func() { close(full) })
				}
				<-full
				time.Sleep(time.Millisecond)
				return true
			}
			var wait sync.WaitGroup
			for i := range 3 * client.MaxSessions {
				wait.Go(func() {
					cred := tt.cred(i)
					if user, err := ask(a, cred); err != nil || user != cred.Token+"/" {
						t.Errorf("answered as %q, %v", user, err)
					}
				})
			}
			wait.Wait()
			if n := int(most.Load()); n != tt.concurrent {
				t.Errorf("%d concurrent calls, want %d", n, tt.concurrent)
			}
			k.wait(t, tt.idle)
		})
	}
}
