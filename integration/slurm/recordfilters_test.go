package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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

// TestFiltersByUser checks that a user's or an administrator's search for a user's
// jobs by name lets slurmdbd read only these, and finds those without the user's uid
// or without an association, also after the user's associations have been deleted.
func TestFiltersByUser(t *testing.T) {
	m := freshCluster(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	db := m.openDatabase(t)
	for i, job := range []string{"id_assoc, 20001", "id_assoc, 0", "id_assoc, 20002", "0, 20001", "0, 20002", "id_assoc + 1000, 20002"} {
		db.query("insert into lab_job_table (job_db_inx, id_job, id_assoc, id_user, mod_time, job_name, id_resv, id_wckey, id_group, state_reason_prev, nodes_alloc, nodelist, `partition`, priority, timelimit, " +
			"time_submit, time_eligible, time_start, time_end, state, array_task_pending, id_array_job, id_array_task, het_job_id, het_job_offset, cpus_req) " +
			fmt.Sprintf("select %d, %d, %s, 1, 'j', 0, 0, 20001, 0, 1, 'node1', 'debug', 1, 1, 1000, 1000, 1000, 2000, 3, 0, 0, 4294967294, 0, 4294967294, 1 ", 900001+i, 700001+i, job) +
			"from lab_assoc_table where user='alice' and deleted=0 limit 1")
	}
	db.query("set global general_log_file='/tmp/queries.log'")
	db.query("set global general_log=1")
	list := func(token, query string) (ids []int) {
		t.Helper()
		a, err := sendRequest(m.client(gatewaySocket), "GET", "/slurmdb/v0.0.42/jobs?start_time=1&fields=job_id&"+query, "", "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		var body struct {
			Jobs []struct {
				ID int `json:"job_id"`
			}
		}
		if err := json.Unmarshal(a.body, &body); err != nil || a.status != http.StatusOK {
			t.Fatalf("%s: status %d: %.300s", query, a.status, a.body)
		}
		for _, j := range body.Jobs {
			ids = append(ids, j.ID)
		}
		return ids
	}
	searched := func() int {
		log, err := os.ReadFile(filepath.Join(m.root, "tmp/queries.log"))
		must(t, err)
		return strings.Count(string(log), "t1.id_assoc='")
	}
	alices := []int{700001, 700002, 700003, 700004}
	if got := list(m.token, "users=bob,alice"); !slices.Equal(got, []int{700001, 700002, 700003, 700004, 700005, 700006}) || searched() != 0 {
		t.Errorf("alice finds bob's %v", got)
	}
	for _, token := range []string{m.token, m.admin} {
		before := searched()
		if got := list(token, "users=alice"); !slices.Equal(got, alices) || searched() == before {
			t.Errorf("found %v, with %d conditions", got, searched()-before)
		}
	}
	m.run(t, "slurm", "sacctmgr", "-i", "delete", "user", "alice")
	for _, token := range []string{m.token, m.admin} {
		if got := list(token, "users=alice"); !slices.Equal(got, alices) {
			t.Errorf("alice without an account: found %v", got)
		}
	}
}
