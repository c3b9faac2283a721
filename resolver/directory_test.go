package resolver

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// TestDirectory checks that a name is looked up only once while it is cached,
// and that a failed look-up is not cached.
func TestDirectory(t *testing.T) {
	now, asked := time.Unix(1000, 0), 0
	d := newDirectory()
	d.now = func() time.Time { return now }
	d.user = func(uid uint32) (string, error) {
		asked++
		switch uid {
		case 1:
			return "alice", nil
		case 2:
			return "", errs.New(errs.NotFound, "none")
		}
		return "", errs.New(errs.Unavailable, "down")
	}
	for _, tt := range []struct {
		uid  uint32
		text string
		sure bool
		all  int // number of look-ups so far
	}{{1, "alice", true, 1}, {1, "alice", true, 1}, {2, "", true, 2}, {2, "", true, 2}, {3, "", false, 3}, {3, "", false, 4}} {
		got, err := d.ask(question{number: tt.uid})
		if got.text != tt.text || (err == nil) != tt.sure || asked != tt.all {
			t.Errorf("uid %d: %q, %v after %d questions", tt.uid, got.text, err, asked)
		}
	}
	now = now.Add(keepNames)
	if d.ask(question{number: 1}); asked != 5 {
		t.Errorf("%d questions after a name expired", asked)
	}
}

// TestNumbersOfNames checks look-ups of names: with a number, without a number,
// and while the user database is unavailable. An ambiguous name must belong to
// no user.
func TestNumbersOfNames(t *testing.T) {
	d := newDirectory()
	asked := 0
	look := func(name string) (uint32, error) {
		asked++
		switch name {
		case "alice":
			return 20001, nil
		case "-i":
			return 0, errs.New(errs.Invalid, "not a name")
		case "slow":
			return 0, errs.New(errs.Unavailable, "down")
		}
		return 0, errs.New(errs.NotFound, "none")
	}
	d.userID, d.groupID = look, func(string) (uint32, error) { return 7, nil }
	for _, tt := range []struct {
		q      question
		number uint32
		sure   bool
		all    int // number of look-ups of users so far
	}{
		{question{name: "alice"}, 20001, true, 1}, {question{name: "alice"}, 20001, true, 1},
		{question{name: "nosuch"}, ipc.NoID, true, 2}, {question{name: "nosuch"}, ipc.NoID, true, 2},
		{question{name: "-i"}, ipc.NoID, true, 3},
		{question{name: "slow"}, 0, false, 4}, {question{name: "slow"}, 0, false, 5},
		{question{name: "alice", group: true}, 7, true, 5},
	} {
		known, err := d.inquirer().ask(tt.q)
		if known.number != tt.number || (err == nil) != tt.sure || asked != tt.all {
			t.Errorf("%+v: %d, %v after %d look-ups", tt.q, known.number, err, asked)
		}
	}
}

// TestNamesOfOthers checks that questions of the dispatcher and of another
// worker do not wait behind a worker's questions to a slow directory service.
func TestNamesOfOthers(t *testing.T) {
	d := newDirectory()
	slow := make(chan struct{})
	d.user = func(uid uint32) (string, error) {
		if uid >= 1000 {
			<-slow
		}
		return fmt.Sprint("u", uid), nil
	}
	captured, honest := d.inquirer(), d.inquirer()
	var asked sync.WaitGroup
	for i := range uint32(mostAsked) {
		asked.Go(func() { captured.ask(question{number: 1000 + i}) })
	}
	for len(captured.turn) < cap(captured.turn) {
		time.Sleep(time.Millisecond)
	}
	if known, _ := d.ask(question{number: 7}); known.text != "u7" {
		t.Errorf("the parent receives %q", known.text)
	}
	if known, _ := honest.ask(question{number: 8}); known.text != "u8" {
		t.Errorf("another worker receives %q", known.text)
	}
	close(captured.over) // the worker exits, so its waiting questions are dropped
	close(slow)
	asked.Wait()
	if len(d.known) > 2+cap(captured.turn) {
		t.Errorf("%d names were looked up", len(d.known))
	}
}

// TestNamesHaveARate checks that a worker that keeps asking for new names gets
// them only at a limited rate.
func TestNamesHaveARate(t *testing.T) {
	d := newDirectory()
	d.user = func(uint32) (string, error) { return "u", nil }
	i := d.inquirer()
	began := time.Now()
	for n := range uint32(askBurst + askRate/2) {
		i.ask(question{number: n})
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("%d names within %s", askBurst+askRate/2, took)
	}
	i.paid.Owe(began, knownBurst)
	began = time.Now()
	for range knownRate / 2 {
		i.ask(question{number: 1}) // a known name
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("%d known names within %s", knownRate/2, took)
	}
}
