package client_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// A ledger is a fake accounting daemon to which clients can add accounts. It
// records the requests of each session and the committed accounts.
type ledger struct {
	client.Address
	act func(requests string) string // returns the event that replaces the answer; "" for a normal answer

	mu        sync.Mutex
	open      []net.Conn
	sessions  int
	requests  []string
	committed []string // names of committed accounts
}

// Events that can replace the normal answer to a request.
const (
	closes  = "closes"  // the connection ends without an answer
	stalls  = "stalls"  // there is no answer
	denies  = "denies"  // the answer is an error number
	idle    = "idle"    // the answer is that nothing has changed
	empty   = "empty"   // the answer is error number 0, with slurmdbd's text
	fails   = "fails"   // the answer is slurmdbd's for an error of its database
	noSQL   = "noSQL"   // also
	lostSQL = "lostSQL" // the answer is the database's number for a lost connection
	noDB    = "noDB"    // slurmdbd is not connected to its database
	garbles = "garbles" // the answer can't be understood
	long    = "long"    // the answer is a list of 200 KB
)

func newLedger(t *testing.T, act func(string) string) *ledger {
	l := &ledger{act: act}
	l.Address = client.Address{Name: "dbd", Network: "tcp", Address: sockettest.Serve(t, "tcp", l.serve)}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, nc := range l.open {
			nc.Close()
		}
	})
	return l
}

func (l *ledger) serve(nc net.Conn) {
	b, err := wire.Read(nc, 1<<20)
	if err != nil {
		return
	}
	f, err := message.ParseFrame(b[2:])
	if err != nil {
		return
	}
	v := f.Header.Version
	reply := func(kind message.Type, body message.Body) {
		b, _ := message.EncodePersistent(v, kind, body)
		nc.Write(b)
	}
	reply(message.AccountingRC, &message.PersistRC{})
	l.mu.Lock()
	l.sessions++
	l.open = append(l.open, nc)
	l.mu.Unlock()
	var added []string
	for {
		b, err := wire.Read(nc, 1<<20)
		if err != nil {
			return
		}
		asked, kind := "", message.Type(binary.BigEndian.Uint16(b))
		d := codec.NewDecoder(v, b[2:])
		switch kind {
		case message.AccountingFini:
			var end message.AccountingEnd
			end.Walk(d)
			asked = map[uint16]string{0: "drop", 1: "keep"}[end.Commit]
		case message.AccountingAddAccounts:
			var list message.Accounts
			list.Walk(d)
			asked = "add"
			for _, a := range list.Records.List {
				added = append(added, a.Name)
				asked += " " + a.Name
			}
		case message.AccountingModifyAccounts:
			asked = "modify"
		case message.AccountingGetTRES:
			asked = "list"
		}
		l.mu.Lock()
		l.requests = append(l.requests, asked)
		happens := l.act(asked)
		if asked == "keep" && (happens == "" || happens == closes) {
			l.committed = append(l.committed, added...)
		}
		l.mu.Unlock()
		if asked == "keep" || asked == "drop" {
			added = nil
		}
		switch happens {
		case closes:
			return
		case stalls:
			nc.Read(make([]byte, 1))
			return
		case denies:
			reply(message.AccountingRC, &message.PersistRC{Code: fault.AccessDenied})
		case idle:
			reply(message.AccountingRC, &message.PersistRC{Code: fault.NoChange})
		case empty:
			reply(message.AccountingRC, &message.PersistRC{Comment: "No error"})
		case fails:
			reply(message.AccountingRC, &message.PersistRC{Code: 1<<32 - 1, Comment: "Something was wrong with your query"})
		case noSQL:
			reply(message.AccountingRC, &message.PersistRC{Code: fault.BadSQL})
		case lostSQL:
			reply(message.AccountingRC, &message.PersistRC{Code: 2013})
		case noDB:
			reply(message.AccountingRC, &message.PersistRC{Code: fault.Database})
		case garbles:
			reply(message.AccountingGotUsers, &message.Users{})
		case long:
			reply(message.AccountingGotTRES, &message.TRESList{ListResponse: listResponse(make([]string, 200), func(string) model.TRES { return model.TRES{Name: strings.Repeat("x", 1000)} })})
		default:
			switch asked {
			case "list":
				reply(message.AccountingGotTRES, &message.TRESList{})
			case "modify":
				reply(message.AccountingGotList, &message.Names{ListResponse: listResponse([]string{"a"}, func(s string) string { return s })})
			default:
				reply(message.AccountingRC, &message.PersistRC{})
			}
		}
	}
}

// recorded returns the requests, the committed accounts and the number of
// sessions.
func (l *ledger) recorded() (asked, kept string, sessions int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.requests, ", "), strings.Join(l.committed, " "), l.sessions
}

// TestEdit checks the ways in which a transaction can end. For each of them, it
// checks which changes are committed and which error the caller gets.
func TestEdit(t *testing.T) {
	t.Parallel()
	fErr := errors.New("own")
	add := func(name string) func(model.Editor) error {
		return func(e model.Editor) error {
			_, err := e.Change(model.Add[model.Account]{Records: []model.Account{{Name: name}}})
			return err
		}
	}
	list := func(e model.Editor) error {
		return e.List(model.List(model.TRESFilter{}, func(*model.TRES) error { return nil }))
	}
	modify := func(e model.Editor) error {
		filter := model.AccountFilter{Assoc: model.AssocFilter{Accounts: []string{"a"}}}
		_, err := e.Change(model.Modify[model.Account]{Filter: filter, Record: model.Account{Description: "d"}})
		return err
	}
	stops := func(model.Editor) error { return fErr }
	again := func(model.Editor) error { return model.ErrRestart }
	steps := func(all ...func(model.Editor) error) func(model.Editor) error {
		return func(e model.Editor) error {
			for _, f := range all {
				if err := f(e); err != nil {
					return err
				}
			}
			return nil
		}
	}
	careless := func(f func(model.Editor) error) func(model.Editor) error {
		return func(e model.Editor) error { f(e); return nil }
	}
	// once returns a function for ledger.act. For the first request that equals
	// at, that function returns the event happens. For every other request, it
	// returns "".
	once := func(at, happens string) func(string) string {
		return func(asked string) string {
			if asked != at || happens == "" {
				return ""
			}
			event := happens
			happens = ""
			return event
		}
	}
	always := func(at, happens string) func(string) string {
		return func(asked string) string {
			if asked == at {
				return happens
			}
			return ""
		}
	}
	tests := []struct {
		name    string
		used    bool // the session has served a request before
		act     func(asked string) string
		f       func(model.Editor) error
		kind    errs.Kind // kind of the error; 0 for none
		fErr    bool      // whether the error is f's own
		unknown bool
		asked   string // expected requests, without the "drop" that an idle session sends
		kept    string
		opened  int
		runs    int // number of calls of f
		repeats int // number of times that asked is repeated; 0 for once
	}{
		{name: "changes are kept", f: steps(list, add("a"), add("b")), asked: "list, add a, add b, keep", kept: "a b", opened: 1, runs: 1},
		{name: "nothing is changed", f: list, asked: "list", opened: 1, runs: 1},
		{name: "f fails after a change", f: steps(add("a"), stops), fErr: true, asked: "add a, drop", opened: 1, runs: 1},
		{name: "f fails before a change", f: steps(list, stops), fErr: true, asked: "list", opened: 1, runs: 1},
		{name: "the daemon refuses a change", act: always("add b", denies), f: steps(add("a"), add("b")), kind: errs.Denied, asked: "add a, add b, drop", opened: 1, runs: 1},
		{name: "the daemon has nothing to change", act: always("add a", idle), f: add("a"), asked: "add a, keep", kept: "a", opened: 1, runs: 1},
		{name: "the daemon gives a modification up", act: once("modify", empty), f: steps(add("a"), modify), asked: "add a, modify, drop, add a, modify, keep", kept: "a", opened: 1, runs: 2},
		{name: "the daemon always gives a modification up", act: always("modify", empty), f: steps(add("a"), modify), kind: errs.Unavailable, asked: "add a, modify, drop", repeats: 10, opened: 1, runs: 10},
		{name: "f continues after the daemon gave up", act: once("modify", empty), f: steps(careless(modify), careless(add("b"))), asked: "modify, drop, modify, add b, keep", kept: "b", opened: 1, runs: 2},
		{name: "the database fails", act: once("add b", fails), f: steps(add("a"), add("b")), asked: "add a, add b, drop, add a, add b, keep", kept: "a b", opened: 1, runs: 2},
		{name: "the database always fails", act: always("add a", fails), f: add("a"), kind: errs.Unavailable, asked: "add a, drop", repeats: 10, opened: 1, runs: 10},
		{name: "the database does not understand", act: once("add a", noSQL), f: add("a"), asked: "add a, drop, add a, keep", kept: "a", opened: 1, runs: 2},
		{name: "the connection to the database is lost", act: once("modify", lostSQL), f: modify, asked: "modify, drop, modify, keep", opened: 1, runs: 2},
		{name: "the connection to the database is lost before the commit", act: once("keep", noDB), f: add("a"), asked: "add a, keep, add a, keep", kept: "a", opened: 2, runs: 2},
		{name: "the daemon fails to list after a change", act: once("list", lostSQL), f: steps(add("a"), list), asked: "add a, list, drop, add a, list, keep", kept: "a", opened: 1, runs: 2},
		{name: "the daemon fails to list before a change", act: once("list", noDB), f: steps(list, add("a")), kind: errs.Unavailable, asked: "list", opened: 1, runs: 1},
		{name: "f always starts again", f: steps(add("a"), again), kind: errs.Unavailable, asked: "add a, drop", repeats: 10, opened: 1, runs: 10},
		{name: "the daemon refuses to keep", act: always("keep", denies), f: add("a"), kind: errs.Denied, asked: "add a, keep", opened: 1, runs: 1},
		{name: "the session was closed", used: true, act: once("add a", closes), f: steps(add("a"), add("b")), asked: "add a, add a, add b, keep", kept: "a b", opened: 2, runs: 2},
		{name: "the session was closed after a change", used: true, act: once("add b", closes), f: steps(add("a"), add("b")), asked: "add a, add b, add a, add b, keep", kept: "a b", opened: 2, runs: 2},
		{name: "a new session is closed", act: once("add b", closes), f: steps(add("a"), add("b")), asked: "add a, add b, add a, add b, keep", kept: "a b", opened: 2, runs: 2},
		{name: "each session is closed", act: always("add b", closes), f: steps(add("a"), add("b")), kind: errs.Unavailable, asked: "add a, add b", repeats: 10, opened: 10, runs: 10},
		{name: "there is no memory for a list", act: always("list", long), f: steps(add("a"), list), kind: errs.Unavailable, asked: "add a, list", opened: 1, runs: 1},
		{name: "the daemon does not answer a change", act: always("add a", stalls), f: add("a"), kind: errs.BadAnswer, unknown: true, asked: "add a", opened: 1, runs: 1},
		{name: "an answer to a change is garbled", act: always("add a", garbles), f: add("a"), kind: errs.BadAnswer, asked: "add a", opened: 1, runs: 1},
		{name: "f continues after the session was lost", act: always("add a", closes), f: steps(careless(add("a")), careless(add("b"))), kind: errs.Unavailable, asked: "add a", repeats: 10, opened: 10, runs: 10},
		{name: "the daemon closes instead of keeping", act: always("keep", closes), f: add("a"), kind: errs.BadAnswer, unknown: true, asked: "add a, keep", kept: "a", opened: 1, runs: 1},
		{name: "a used session's daemon closes instead of keeping", used: true, act: always("keep", closes), f: add("a"), kind: errs.BadAnswer, unknown: true, asked: "add a, keep", kept: "a", opened: 1, runs: 1},
		{name: "the daemon does not answer the commit", act: always("keep", stalls), f: add("a"), kind: errs.BadAnswer, unknown: true, asked: "add a, keep", opened: 1, runs: 1},
		{name: "the answer to keep is garbled", act: always("keep", garbles), f: add("a"), kind: errs.BadAnswer, unknown: true, asked: "add a, keep", opened: 1, runs: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // most of the time, the longest cases wait
			act := func(string) string { return "" }
			started := false
			l := newLedger(t, func(asked string) string {
				if !started || tt.act == nil {
					return act(asked)
				}
				return tt.act(asked)
			})
			timeout := time.Minute
			if tt.unknown {
				timeout = time.Second
			}
			a := client.NewAccounting(client.Config{Accounting: []client.Address{l.Address}, Timeout: time.Minute, LongTimeout: timeout, Answers: client.NewBudget(64 << 10)})
			skip := 0
			if tt.used {
				if err := a.Edit(context.Background(), ann, list); err != nil {
					t.Fatal(err)
				}
				skip = 2 // the first Edit sent two requests, list and drop
				for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
					if asked, _, _ := l.recorded(); asked == "list, drop" {
						break
					}
					if time.Now().After(end) {
						t.Fatal("the transaction of an idle session did not end")
					}
				}
			}
			l.mu.Lock()
			started = true
			l.mu.Unlock()
			runs := 0
			err := a.Edit(context.Background(), ann, func(e model.Editor) error { runs++; return tt.f(e) })
			switch e, _ := errors.AsType[*errs.Error](err); {
			case tt.fErr:
				if !errors.Is(err, fErr) {
					t.Errorf("error %v, want f's", err)
				}
			case (err != nil) != (tt.kind != 0) || err != nil && errs.KindOf(err) != tt.kind:
				t.Errorf("error %v of kind %v, want %v", err, errs.KindOf(err), tt.kind)
			case tt.unknown != (e != nil && e.Code == errs.OutcomeUnknown):
				t.Errorf("error %v, want an unknown outcome: %v", err, tt.unknown)
			}
			asked, kept, opened := l.recorded()
			list := slices.CompactFunc(strings.Split(asked, ", ")[skip:], func(x, y string) bool { return x == "drop" && x == y }) // an idle session also sends a "drop"
			if n := len(list); n > 1 && list[n-1] == "drop" && !strings.HasSuffix(tt.asked, "drop") {
				list = list[:n-1]
			}
			want := strings.Repeat(tt.asked+", ", max(tt.repeats, 1))
			if d := cmp.Diff(strings.TrimSuffix(want, ", "), strings.Join(list, ", ")); d != "" {
				t.Errorf("asked (-want, +got):\n%s", d)
			}
			if kept != tt.kept || opened != tt.opened || runs != tt.runs {
				t.Errorf("kept %q, %d sessions, %d runs; want %q, %d, %d", kept, opened, runs, tt.kept, tt.opened, tt.runs)
			}
		})
	}
}

// TestEditWithASecondDaemon checks what happens if the first of two accounting
// daemons is lost. If it is lost before the request to commit, the changes must
// go to the second daemon. If it is lost after that request, they must not.
func TestEditWithASecondDaemon(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]struct{ first, second string }{"add a": {"", "a"}, "keep": {"a", ""}} {
		t.Run(at, func(t *testing.T) {
			first := newLedger(t, func(asked string) string {
				if asked == at {
					return closes
				}
				return ""
			})
			second := newLedger(t, func(string) string { return "" })
			second.Name = "backup"
			err := accountingOf(first.Address, second.Address).Edit(context.Background(), ann, func(e model.Editor) error {
				_, err := e.Change(model.Add[model.Account]{Records: []model.Account{{Name: "a"}}})
				return err
			})
			if e, _ := errors.AsType[*errs.Error](err); (err != nil) != (at == "keep") || err != nil && e.Code != errs.OutcomeUnknown {
				t.Errorf("error %v", err)
			}
			_, kept, _ := first.recorded()
			if _, other, _ := second.recorded(); kept != want.first || other != want.second {
				t.Errorf("kept %q and %q, want %q and %q", kept, other, want.first, want.second)
			}
		})
	}
}

// TestCallsInEdits checks that as many transactions of a user as may be open at a
// time can each make other calls.
func TestCallsInEdits(t *testing.T) {
	t.Parallel()
	l := newLedger(t, func(string) string { return "" })
	a := client.NewAccounting(client.Config{Accounting: []client.Address{l.Address}, Timeout: time.Minute, LongTimeout: time.Minute})
	const n = 8
	var open, ended sync.WaitGroup
	open.Add(n)
	for range n {
		ended.Go(func() {
			first := true
			err := a.Edit(t.Context(), ann, func(e model.Editor) error {
				if first {
					open.Done()
				}
				first = false
				open.Wait()
				return client.Records(e.Context(), a, ann, model.TRESFilter{}, func(*model.TRES) error { return nil })
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	ended.Wait()
}
