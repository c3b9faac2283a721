package cli

import (
	"net/url"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"schedrestd/cli/rest"
)

const accountingList = `{"jobs": [
 {"job_id": 7, "name": "old", "user": "ann", "account": "a", "partition": "cpu", "state": {"current": ["FAILED"]}, "time": {"start": 100, "end": 160}, "required": {"CPUs": 1}, "nodes": "node7",
  "tres": {"allocated": [{"type": "cpu", "name": "", "count": 4}, {"type": "gres", "name": "gpu", "count": 2}]}, "exit_code": {"return_code": {"set": true, "number": 3}}},
 {"job_id": 6, "name": "gone", "user": "bob", "partition": "gpu", "state": {"current": ["CANCELLED"]}, "time": {"start": 4294967294, "end": 200}, "nodes": "None assigned", "kill_request_user": "root\u001b"},
 {"job_id": 5, "name": "again", "user": "eve", "state": {"current": ["PENDING", "REQUEUED"]}, "time": {"start": 100, "end": 103}},
 {"job_id": 5, "name": "again", "user": "eve", "state": {"current": ["PENDING", "REQUEUED"]}, "time": {"start": 0, "end": 0}},
 {"job_id": 9, "array": {"job_id": 8, "task_id": {"set": true, "number": 1}}, "name": "task\u001b[2J", "user": "bob", "partition": "gpu", "state": {"current": ["RUNNING"]}, "time": {"start": 0, "end": 0}}
]}`

// TestHistory checks which accounting records are listed, and what the server is
// asked for, besides the fields. Ids and options intersect.
func TestHistory(t *testing.T) {
	t.Setenv("TZ", "UTC")
	for _, tt := range []struct {
		args   string
		status int
		want   string
		query  string // of the last request, without start_time
		errOut string
	}{
		{"history --columns jobid,name,cpus,gpus,exit,nodelist", 0, `JOBID  NAME         CPUS  GPUS  EXIT  NODELIST(REASON)
5      again           -     -     0  -
5      again           -     -     -  -
6      gone            -     -     0  -
7      old             4     2     3  node7
8_1    task\x1b[2J     -     -     -  -
`, "", ""},
		{"history --columns jobid,state,time --no-header -n again", 0, "5  REQUEUED          0:03\n5  PENDING+REQUEUED  0:00\n", "job_name=again", ""}, // two runs
		{"history --columns jobid,state --no-header -p gpu", 0, "6    CANCELLED_by_root\\x1b\n8_1  RUNNING\n", "partition=gpu", ""},                    // as sacct
		{"history --columns jobid --no-header --me", 0, "7\n", "users=ann", ""},
		{"history --columns jobid --no-header -u bob,carol -p gpu", 0, "6\n8_1\n", "partition=gpu", ""},
		{"history --columns jobid --no-header --state FAILED,CA", 0, "6\n7\n", "", ""},
		{"history --columns jobid --no-header -w node[5-7]", 0, "7\n", "node=node%5B5-7%5D", ""},
		{"history --columns jobid --no-header 7 6 -u ann", 0, "7\n", "step=6&users=ann", ""},
		{"history --columns jobid --no-header 8 7 --since 2026-01-02", 0, "7\n8_1\n", "step=7", ""},
		{"history 7 99 --columns name --no-header", statusUnknown, "old\n", "step=99", "job 99 is unknown"},
		{"history --state bogus", statusUsage, "", "", "unknown state"},
		{"history --since soon", statusUsage, "", "", "--since soon: not a time"},
		{"history --since 2999-01-01", statusUsage, "", "", "--since 2999-01-01: in the future"},
		{"history --since 1d --until 2d", statusUsage, "", "", "not after --since"},
		{"history x", statusUsage, "", "", "not a job id"},
	} {
		g := &gateway{}
		status, out, errOut := runCommand(t, g, strings.Fields(tt.args)...)
		if diff := gocmp.Diff(tt.want, out); diff != "" || status != tt.status || !strings.Contains(errOut, tt.errOut) || tt.errOut == "" && errOut != "" {
			t.Errorf("%s: status %d, %s -want +got\n%s", tt.args, status, errOut, diff)
		}
		query := ""
		if len(g.queries) > 0 {
			var parts []string
			for part := range strings.SplitSeq(g.queries[len(g.queries)-1], "&") {
				if !strings.HasPrefix(part, "start_time=") && part != "fields="+strings.Join(rest.AccountingFields, ",") && part != "" {
					parts = append(parts, part)
				}
			}
			query = strings.Join(parts, "&")
		}
		if query != tt.query {
			t.Errorf("%s: asked for %q, want %q", tt.args, query, tt.query)
		}
	}
	for _, args := range [][]string{{"--since", ""}, {"--user", ""}, {""}, {"-t", " "}} {
		if status, out, errOut := runCommand(t, &gateway{}, append([]string{"history"}, args...)...); status != statusUsage || out != "" || !strings.Contains(errOut, "empty") {
			t.Errorf("%q: status %d, %s%s", args, status, out, errOut)
		}
	}
}

// TestPeriod checks the parameters for a period, and which periods are errors.
func TestPeriod(t *testing.T) {
	now := time.Date(2026, 3, 5, 10, 30, 15, 0, time.UTC)
	for _, tt := range []struct{ since, until, want, err string }{
		{"", "", "", ""},
		{"today", "", "begin=1772668800", ""},
		{"", "2026-04-01", "end=1775001600", ""},
		{"yesterday", "today", "begin=1772582400&end=1772668800", ""},
		{"soon", "", "", "--since soon: not a time"},
		{"today", "soon", "", "--until soon: not a time"},
		{"2026-03-06", "", "", "in the future"},
		{"today", "yesterday", "", "not after --since"},
	} {
		query := url.Values{}
		err := (&period{tt.since, tt.until}).addTo(query, "begin", "end", now)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || err == nil && query.Encode() != tt.want {
			t.Errorf("from %q to %q: %s, %v", tt.since, tt.until, query.Encode(), err)
		}
	}
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 3, 5, 10, 30, 15, 0, time.UTC)
	for text, want := range map[string]string{
		"now": "2026-03-05T10:30:15Z", "today": "2026-03-05T00:00:00Z", "yesterday": "2026-03-04T00:00:00Z", "2026-01-02": "2026-01-02T00:00:00Z",
		"2026-01-02T03:04": "2026-01-02T03:04:00Z", "2026-01-02T03:04:05": "2026-01-02T03:04:05Z", "23:59": "2026-03-05T23:59:00Z",
		"90m": "2026-03-05T09:00:15Z", "12h": "2026-03-04T22:30:15Z", "7d": "2026-02-26T10:30:15Z", "4w": "2026-02-05T10:30:15Z",
		"d": "", "5": "", "-1d": "", "1y": "", "soon": "", "2026-13-01": "", "99999999d": "", "25:00": "",
	} {
		got, ok := parseTime(text, now)
		if ok != (want != "") || ok && got.Format(time.RFC3339) != want {
			t.Errorf("%q: %s, %t, want %q", text, got, ok, want)
		}
	}
}
