package resolver

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
)

// TestDirectory checks that a result is cached, even if the user does not
// exist, and that the user is looked up again when the result has expired. If
// the user database is unavailable, nothing must be cached.
func TestDirectory(t *testing.T) {
	now, lookups := time.Unix(1000, 0), 0
	d := newDirectory()
	d.now = func() time.Time { return now }
	d.user = func(uid uint32) (string, error) {
		lookups++
		switch uid {
		case 1:
			return "alice", nil
		case 2:
			return "", errs.New(errs.NotFound, "none")
		}
		return "", errs.New(errs.Unavailable, "down")
	}
	for _, tt := range []struct {
		uid         uint32
		text        string
		sure        bool
		wantLookups int // number of look-ups so far
	}{{1, "alice", true, 1}, {1, "alice", true, 1}, {2, "", true, 2}, {2, "", true, 2}, {3, "", false, 3}, {3, "", false, 4}} {
		got, err := d.resolve(question{number: tt.uid})
		if got.text != tt.text || (err == nil) != tt.sure || lookups != tt.wantLookups {
			t.Errorf("uid %d: %q, %v after %d questions", tt.uid, got.text, err, lookups)
		}
	}
	now = now.Add(nameTTL)
	if d.resolve(question{number: 1}); lookups != 5 {
		t.Errorf("%d questions after a name expired", lookups)
	}
}

// TestNumbersOfNames checks look-ups of names that have an id, of names that
// have none, and of names while the user database is unavailable. A text that
// can't be a name must have no id.
func TestNumbersOfNames(t *testing.T) {
	d := newDirectory()
	lookups := 0
	d.accounts.lookup = func(name string) (nss.User, error) {
		lookups++
		switch name {
		case "alice":
			return nss.User{UID: 20001}, nil
		case "-i":
			return nss.User{}, errs.New(errs.Invalid, "not a name")
		case "slow":
			return nss.User{}, errs.New(errs.Unavailable, "down")
		}
		return nss.User{}, errs.New(errs.NotFound, "none")
	}
	d.groupID = func(string) (uint32, error) { return 7, nil }
	for _, tt := range []struct {
		q           question
		number      uint32
		sure        bool
		wantLookups int // number of look-ups of users so far
	}{
		{question{name: "alice"}, 20001, true, 1}, {question{name: "alice"}, 20001, true, 1},
		{question{name: "nosuch"}, ipc.NoID, true, 2}, {question{name: "nosuch"}, ipc.NoID, true, 2},
		{question{name: "-i"}, ipc.NoID, true, 3},
		{question{name: "slow"}, 0, false, 4}, {question{name: "slow"}, 0, false, 5},
		{question{name: "alice", group: true}, 7, true, 5},
	} {
		got, err := d.inquirer().resolve(tt.q)
		if got.number != tt.number || (err == nil) != tt.sure || lookups != tt.wantLookups {
			t.Errorf("%+v: %d, %v after %d look-ups", tt.q, got.number, err, lookups)
		}
	}
}

// TestNamesOfOthers checks that a worker's questions to a slow directory
// service do not delay the questions of the dispatcher and of another worker.
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
	var wg sync.WaitGroup
	for i := range uint32(limit.ResolverPending.Share) {
		wg.Go(func() { captured.resolve(question{number: 1000 + i}) })
	}
	for d.forWorkers.Held(captured) < limit.ResolverLookups.Share {
		time.Sleep(time.Millisecond)
	}
	if got, _ := d.resolve(question{number: 7}); got.text != "u7" {
		t.Errorf("the parent receives %q", got.text)
	}
	if got, _ := honest.resolve(question{number: 8}); got.text != "u8" {
		t.Errorf("another worker receives %q", got.text)
	}
	captured.stop() // the worker exits, so its waiting questions are dropped
	close(slow)
	wg.Wait()
	if len(d.cache) > 2+limit.ResolverLookups.Share {
		t.Errorf("%d names were looked up", len(d.cache))
	}
}

// TestNamesHaveARate checks that a worker that keeps asking for new names gets
// them only at a limited rate.
func TestNamesHaveARate(t *testing.T) {
	d := newDirectory()
	d.user = func(uint32) (string, error) { return "u", nil }
	testMembers(d)
	i := d.inquirer()
	began := time.Now()
	for n := range uint32(limit.ResolverMisses.Burst + limit.ResolverMisses.PerSecond/2) {
		i.resolve(question{number: n})
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("%d names within %s", int(limit.ResolverMisses.Burst+limit.ResolverMisses.PerSecond/2), took)
	}
	i.questions.Charge(began, limit.ResolverQuestions.Burst)
	began = time.Now()
	for range int(limit.ResolverQuestions.PerSecond / 2) {
		i.resolve(question{number: 1}) // a known name
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("%d known names within %s", int(limit.ResolverQuestions.PerSecond/2), took)
	}
	began = time.Now()
	for range int(limit.ResolverQuestions.PerSecond / 2) {
		_, _ = i.member(memberKey{user: "alice", group: "students"}) // from the cache, after the first
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("%d questions about members within %s", int(limit.ResolverQuestions.PerSecond/2), took)
	}
}
