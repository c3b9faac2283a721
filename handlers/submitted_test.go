package handlers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/model"
)

// submitWith submits a job whose description has an additional member. It
// returns the description that the controller received.
func submitWith(t *testing.T, member string) *model.JobDesc {
	t.Helper()
	f := demo()
	w := serve(t, config(f), request(http.MethodPost, "/slurm/v0.0.43/job/submit", `{"job": {"script": "x", `+member+`}}`))
	body := envelope(t, w.Body.Bytes())
	if w.Code != http.StatusOK || len(body.Warnings) != 0 || len(f.submitted) != 1 {
		t.Fatalf("%s: status %d: %s", member, w.Code, w.Body)
	}
	return f.submitted[0]
}

// TestSubmitTimes checks the forms in which a client may send a time. They are
// the same as in slurmrestd: a number, a wrapped number, a date, or words.
func TestSubmitTimes(t *testing.T) {
	local := time.Date(2026, 12, 24, 10, 0, 0, 0, time.Local).Unix()
	for value, want := range map[string]int64{
		`1795999999`:            1_795_999_999,
		`"1795999999"`:          1_795_999_999,
		`"uts1795999999"`:       1_795_999_999,
		`"2026-12-24T10:00:00"`: local,
		`"2026-12-24T10:00"`:    local,
		`"12/24/26-10:00"`:      local,
		`{"set": true, "infinite": false, "number": 1795999999}`: 1_795_999_999,
		`{"set": false, "infinite": false, "number": 0}`:         0,
		`""`: 0,
		`0`:  0,
	} {
		for _, field := range []string{"begin_time", "deadline", "end_time"} {
			d := submitWith(t, fmt.Sprintf("%q: %s", field, value))
			if got := map[string]model.Time{"begin_time": d.BeginTime, "deadline": d.Deadline, "end_time": d.EndTime}[field]; int64(got) != want {
				t.Errorf("%s %s: %d, want %d", field, value, got, want)
			}
		}
	}
	now := time.Now()
	for _, words := range []string{"now+1hour", "tomorrow", "midnight", "noon", "fika", "teatime", "23:59:59"} {
		if got := submitWith(t, fmt.Sprintf(`"begin_time": %q`, words)).BeginTime; int64(got) < now.Unix() || int64(got) > now.Add(26*time.Hour).Unix() {
			t.Errorf("%s: %d", words, got)
		}
	}
}

// TestSubmitTexts checks that an amount of memory may be text with a unit, such
// as "1G", and that the distribution "plane" may include its size, as in
// "plane=4".
func TestSubmitTexts(t *testing.T) {
	memory := func(n uint64) model.JobDesc { return model.JobDesc{Script: "x", MinMemory: model.Some(n)} }
	plane := model.JobDesc{Script: "x", Distribution: model.Some[uint32](4), PlaneSize: model.Some[uint16](4),
		Environment: []string{"SLURM_DISTRIBUTION=plane", "SLURM_DIST_PLANESIZE=4"}}
	for member, want := range map[string]model.JobDesc{
		`"memory_per_node": 512`:     memory(512),
		`"memory_per_node": "512"`:   memory(512),
		`"memory_per_node": "512M"`:  memory(512),
		`"memory_per_node": "1G"`:    memory(1024),
		`"memory_per_node": "1gb"`:   memory(1024),
		`"memory_per_node": "2T"`:    memory(2 << 20),
		`"memory_per_node": "2048K"`: memory(2),
		`"memory_per_node": "2049K"`: memory(3),
		`"memory_per_node": "0"`:     memory(0),
		`"memory_per_cpu": "1G"`:     memory(1024 | model.MemPerCPU),
		`"distribution": "plane=4"`:  plane,
		`"distribution": "PLANE=4"`:  plane,
		`"distribution": "plane", "distribution_plane_size": {"set": true, "number": 4}`: plane,
	} {
		if d := cmp.Diff(want, *submitWith(t, member)); d != "" {
			t.Errorf("%s: %s", member, d)
		}
	}
}

// TestSubmitAsUser tests submissions that name a user or group. The gateway
// must look up the id, except for the client's own name, which the controller
// knows.
func TestSubmitAsUser(t *testing.T) {
	for member, want := range map[string]model.JobDesc{
		`"user_id": "alice"`:                    {Script: "x"},
		`"user_id": "bob"`:                      {Script: "x", UserID: model.Some[uint32](20002)},
		`"user_id": "20002"`:                    {Script: "x", UserID: model.Some[uint32](20002)},
		`"user_id": "root"`:                     {Script: "x", UserID: model.Some[uint32](0)},
		`"user_id": ""`:                         {Script: "x"},
		`"group_id": "alice"`:                   {Script: "x", GroupID: model.Some[uint32](20001)},
		`"user_id": "bob", "group_id": "20001"`: {Script: "x", UserID: model.Some[uint32](20002), GroupID: model.Some[uint32](20001)},
		`"group_id": ""`:                        {Script: "x"},
	} {
		if d := cmp.Diff(want, *submitWith(t, member)); d != "" {
			t.Errorf("%s: %s", member, d)
		}
	}
}

// TestSubmitAsUnknownUser checks that a submission is refused if the gateway
// can't look up its user or group.
func TestSubmitAsUnknownUser(t *testing.T) {
	for _, tt := range []struct {
		member, source, wantText string
		status                   int
	}{
		{`"user_id": "nosuch"`, "#/job/user_id", `the gateway's host has no user "nosuch"`, 422},
		{`"group_id": "nosuch"`, "#/job/group_id", `the gateway's host has no group "nosuch"`, 422},
		{`"user_id": "4294967294"`, "#/job/user_id", "job/user_id: 4294967294 is out of range, 0 to 4294967293", 422},
		{`"user_id": "99999999999999999999"`, "#/job/user_id", "job/user_id: 99999999999999999999 is out of range", 422},
		{`"user_id": "-1"`, "#/job/user_id", `the gateway's host has no user "-1"`, 422},
		{`"user_id": "slow"`, "", "the user database is unavailable", 503},
	} {
		f := demo()
		w := serve(t, config(f), request(http.MethodPost, "/slurm/v0.0.43/job/submit", `{"job": {"script": "x", `+tt.member+`}}`))
		body := envelope(t, w.Body.Bytes())
		if w.Code != tt.status || len(f.submitted) != 0 || len(body.Errors) != 1 || body.Errors[0].Source != tt.source || !strings.HasPrefix(body.Errors[0].Description, tt.wantText) {
			t.Errorf("%s: status %d, %d submitted: %s", tt.member, w.Code, len(f.submitted), w.Body)
		}
	}
}
