package pool

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/ipc/work"
)

// fakeUID is the uid of all fakeOutputProcesses.
const fakeUID = 1000

// TestCredentialProcesses checks when a worker can have a process started that gets
// credentials: at most one for a number in a while.
func TestCredentialProcesses(t *testing.T) {
	f := new(fakeOutputs)
	p, w := servingOne(t)
	refused := make(chan string, 10)
	p.sync(func() {
		p.gen.Credential = func(client uint64) (OutputProcess, error) { return f.start(client, nil, nil) }
		p.gen.NoCredential = func(client uint64, reason string) { refused <- fmt.Sprint(client, ": ", reason) }
	})
	refusal := func(want string) {
		t.Helper()
		if got := <-refused; got != want {
			t.Errorf("the keeper receives %q, want %q", got, want)
		}
	}
	ask := func(client uint64) {
		t.Helper()
		must(t, w.Channel.Send(&work.AskCredential{Client: client, UID: fakeUID}))
	}
	ask(5)
	ask(7)
	await(t, "two processes have started", func() bool { return f.count() == 2 })
	await(t, "this is known", func() (known bool) {
		p.sync(func() {
			known = true
			for _, worker := range p.workers {
				for _, c := range worker.credentials {
					known = known && !c.starting
				}
			}
		})
		return known
	})
	ask(5) // too soon
	refusal("5: the last one has just exited")
	if held := p.credentials.Held(fakeUID); held != 2 || f.clients[0]+f.clients[1] != 12 {
		t.Errorf("%d places are taken, for %v", held, f.clients)
	}
	f.all[0].exit()
	f.all[1].exit()
	await(t, "the places are free", func() bool { return p.credentials.Held(fakeUID) == 0 })
	p.sync(func() {
		for _, worker := range p.workers {
			worker.credentials[5].asked = time.Time{}
		}
	})
	f.fail(errors.New("no memory"))
	ask(5)
	p.logged("no process gets the credentials of a user")
	refusal("5: no memory")
	f.fail(nil)
	for i := range limit.CredentialProcesses.Share + 1 {
		ask(uint64(101 + 2*i))
	}
	p.logged("there are too many such processes")
	refusal(fmt.Sprint(101+2*limit.CredentialProcesses.Share, ": there are too many such processes"))
}

// TestGuessedNumbers checks that a worker is killed that asks for processes of more
// users than there can be.
func TestGuessedNumbers(t *testing.T) {
	p, w := servingOne(t)
	p.sync(func() {
		p.gen.Credential = func(uint64) (OutputProcess, error) { return nil, errors.New("no such user") }
		p.gen.NoCredential = func(uint64, string) {}
	})
	for i := range uint64(maxAsked + 1) {
		must(t, w.Channel.Send(&work.AskCredential{Client: 2*i + 1, UID: uint32(i)}))
	}
	p.logged("sent AskCredential too often")
}

// TestHostileCredentials checks that a worker is killed if it asks for a process of
// nobody, or with a false uid, or where no process gets credentials.
func TestHostileCredentials(t *testing.T) {
	for reason, tt := range map[string]struct {
		off bool
		m   work.AskCredential
	}{
		"sent AskCredential while no process gets credentials": {true, work.AskCredential{Client: 1, UID: fakeUID}},
		"sent AskCredential for no user":                       {false, work.AskCredential{Client: 2, UID: fakeUID}}, // a number for output
		"sent AskCredential with a false uid":                  {false, work.AskCredential{Client: 1, UID: 7}},
	} {
		f := new(fakeOutputs)
		p, w := servingOne(t)
		p.sync(func() {
			if !tt.off {
				p.gen.Credential = func(client uint64) (OutputProcess, error) { return f.start(client, nil, nil) }
			}
		})
		must(t, w.Channel.Send(&tt.m))
		p.logged(reason)
		if reason == "sent AskCredential for no user" && f.count() != 0 {
			t.Error("a process has started")
		}
	}
}
