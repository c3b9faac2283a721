package handlers

import (
	"strings"
	"testing"

	"schedrestd/handlers/feed"
)

// TestFlagsShareFeeds checks that clients whose flags make no difference to what
// the controller sends share one feed, and that each still gets what its flags
// show.
func TestFlagsShareFeeds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		list    string
		flags   []string
		readers int
	}{
		{"/sched/v0.0.43/nodes", []string{"", "ALL,DETAIL", "ALL,DETAIL,LOCAL", "ALL,DETAIL,SIBLING,FEDERATION", "ALL,DETAIL,MIXED"}, 1},
		{"/sched/v0.0.43/nodes", []string{"ALL", "DETAIL", "ALL,DETAIL,FUTURE", "ALL,FUTURE,LOCAL", "LOCAL", "SIBLING"}, 5},
		{"/sched/v0.0.43/jobs", []string{"", "ALL,DETAIL", "ALL,DETAIL,LOCAL", "ALL,DETAIL,FUTURE,MIXED,SIBLING"}, 1},
		{"/sched/v0.0.42/jobs", []string{"ALL,DETAIL", "ALL,DETAIL,LOCAL"}, 2}, // answers of this version show the flags
		{"/sched/v0.0.43/partitions", []string{"ALL", "ALL,DETAIL", "ALL,LOCAL,FUTURE"}, 1},
	} {
		n, option := counted()
		_, _, url := newLiving(t, option)
		for _, flags := range tt.flags {
			query := "?"
			if flags != "" {
				query += "flags=" + flags
			}
			next, _ := events(t, url+tt.list+query)
			got := next()
			if mixed := strings.Contains(got, `"MIXED"`); strings.Contains(tt.list, "nodes") && mixed != (flags == "" || strings.Contains(flags, "MIXED")) {
				t.Errorf("%s with flags %q: %s", tt.list, flags, got)
			}
		}
		if got := n.of(feed.Readers); got != tt.readers {
			t.Errorf("%s with flags %q: %d feeds, want %d", tt.list, tt.flags, got, tt.readers)
		}
	}
}
