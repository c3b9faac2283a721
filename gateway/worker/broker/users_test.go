package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
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
