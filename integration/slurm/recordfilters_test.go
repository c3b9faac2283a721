package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestFiltersOfRecords compares the filters of the gateway's list of recorded
// jobs with what sacct shows. Each filter must select at least one job, and must
// leave one out.
func TestFiltersOfRecords(t *testing.T) {
	m := freshCluster(t)
	m.populate(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	eventually(t, "slurmdbd has the ended jobs", func() bool {
		return strings.Contains(m.run(t, "root", "sacct", "-n", "-X", "-j", jobs["failed"], "-o", "end"), "T")
	})
	list := func(filter string) []string {
		t.Helper()
		a, err := sendRequest(m.client(gatewaySocket), "GET", "/scheddb/v0.0.45/jobs?fields=job_id&"+filter, "", "X-SLURM-USER-TOKEN: "+m.admin)
		must(t, err)
		var body struct {
			Jobs []struct {
				ID int `json:"job_id"`
			}
			Warnings []any
		}
		if err := json.Unmarshal(a.body, &body); err != nil || a.status != http.StatusOK || len(body.Warnings) > 0 {
			t.Fatalf("%s: status %d: %.300s", filter, a.status, a.body)
		}
		var ids []string
		for _, j := range body.Jobs {
			ids = append(ids, fmt.Sprint(j.ID))
		}
		slices.Sort(ids)
		return ids
	}
	// Of an array's tasks that wait there is one record, whose line has several ids.
	sacct := func(options, columns, condition string) []string {
		t.Helper()
		line := "sacct -a -D -n -P -X -o jobidraw," + columns + " " + options + " | awk -F'|' '" + condition + " {print $1}' | sed 's/_.*//'"
		ids := strings.Fields(m.run(t, "slurm", "sh", "-c", line))
		slices.Sort(ids)
		return ids
	}
	all := list("")
	for _, tt := range []struct{ filter, options, columns, condition string }{
		{"reservation=cores", "", "reservation", `$2 == "cores"`},
		{"reservation=none,cores&users=bob", "", "reservation", `$2 == "cores"`},
		{"state=FAILED", "", "state", `$2 == "FAILED"`},
		{"state=FAILED,TIMEOUT&start_time=now-1hour", "", "state", `$2 == "FAILED"`},
		{"state=FAILED&end_time=now%2B1hour", "", "state", `$2 == "FAILED"`},
		{"state=running", "", "state", `$2 == "RUNNING"`},
		{"state=RUNNING,SUSPENDED&start_time=now-1hour", "-s R,S -S now-1hour -E now", "state", ""},
		{"exit_code=7", "", "exitcode", `$2 == "7:0"`},
		{"exit_code=0", "", "exitcode", `$2 == "0:0"`},
	} {
		got, want := list(tt.filter), sacct(tt.options, tt.columns, tt.condition)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, but sacct shows %v", tt.filter, got, want)
		}
		if len(got) == 0 || len(got) >= len(all) {
			t.Errorf("%s selects %d of %d jobs", tt.filter, len(got), len(all))
		}
	}
	for _, filter := range []string{"reservation=none", "exit_code=9"} {
		if got := list(filter); got != nil {
			t.Errorf("%s selects %v", filter, got)
		}
	}
}
