package broker

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc/work"
)

// TestNames checks that an id is looked up only once while its name is cached.
// While the database is unavailable, no id may be looked up.
func TestNames(t *testing.T) {
	now := time.Unix(1000, 0)
	var lookups []string
	n := names{now: func() time.Time { return now }, lookup: func(_ bool, id uint32) (string, error) {
		lookups = append(lookups, fmt.Sprint(id))
		switch id {
		case 1:
			return "alice", nil
		case 2:
			return "", errs.New(errs.NotFound, "no such user")
		}
		return "", errs.New(errs.Unavailable, "the directory does not answer")
	}}
	var got []string
	ask := func(ids ...uint32) {
		for _, number := range ids {
			got = append(got, n.get(id{number: number}))
		}
	}
	ask(1, 2, 1, 2) // looks up each id once
	ask(3, 4, 1)    // 3 finds the database unavailable, so 4 is not looked up; 1 is still cached
	now = now.Add(lookupPause)
	ask(4)
	now = now.Add(nameTTL)
	ask(1)
	if diff := cmp.Diff([]string{"alice", "2", "alice", "2", "3", "4", "alice", "4", "alice"}, got); diff != "" {
		t.Errorf("names (want -, got +):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "1"}, lookups); diff != "" {
		t.Errorf("asked for (want -, got +):\n%s", diff)
	}
}

// TestUsersTakeTurns checks that a user whose requests name many users, in a slow
// directory, does not delay the request of another user by all of them.
func TestUsersTakeTurns(t *testing.T) {
	questions, proceed := make(chan string, 20), make(chan struct{})
	u := brokerWithResolver(t, func(q *work.Lookup) *work.LookupResult {
		questions <- q.Name
		<-proceed
		return &work.LookupResult{ID: q.ID, Available: true, Number: 7}
	}).Users()
	var requests sync.WaitGroup
	begun := 0
	resolve := func(user, name string) {
		requests.Go(func() {
			if _, err := u.UserID(semaphore.WithKey(t.Context(), user), name); err != nil {
				t.Error(err)
			}
		})
		begun++
		for n := 0; n != begun; { // until it holds the only place, or waits for it
			runtime.Gosched()
			held, waiting := u.byName.Counts()
			n = held + waiting
		}
	}
	for n := range 6 {
		resolve("mallory", fmt.Sprint("x", n))
	}
	resolve("bob", "alice")
	var order []string
	for range 7 {
		order = append(order, <-questions)
		proceed <- struct{}{}
	}
	requests.Wait()
	if got := strings.Join(order, " "); got != "x0 x1 alice x2 x3 x4 x5" {
		t.Errorf("looked up in the order %s", got)
	}
}
