package handlers

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// TestExplain checks that jobs that wait or have failed are explained, if a client
// wants it, in lists and alone.
func TestExplain(t *testing.T) {
	f := demo()
	f.jobs = []model.Job{
		{StepID: model.StepID{JobID: 1}, State: model.JobPending, StateReason: 2, Dependency: "afterok:7"},
		{StepID: model.StepID{JobID: 2}, State: model.JobPending, StateReason: 53, QOS: "normal"},
		{StepID: model.StepID{JobID: 3}, State: model.JobRunning},
		{StepID: model.StepID{JobID: 4}, State: model.JobPending, StateReason: 4711, StateDescription: "the moon is full"},
		{StepID: model.StepID{JobID: 5}, State: model.JobTimeout, StateReason: 25},
		{StepID: model.StepID{JobID: 6}, State: model.JobCancelled, StateReason: 3}, // it has waited for resources
	}
	type explanation struct{ Why, Change, About string }
	want := map[uint32]*explanation{
		1: {"The job waits for other jobs: job 7 must end without an error.", "It can start when this has happened.", "dependency afterok:7"},
		2: {"The user's jobs with this QOS that run are as many as the QOS permits.", "It can start when one of them ends.", "QOS normal"},
		4: {Why: "the moon is full"},
		5: {Why: "The job ran for as long as its time limit.", Change: "Submit it with a longer time limit."},
	}
	for target, explains := range map[string]bool{
		"jobs?explain=true": true, "jobs": false, "jobs?explain=false": false, "jobs?explain=true&fields=job_id,explanation.why,explanation.change,explanation.about": true,
		"job/1?explain=true": true, "job/1": false, "job/3?explain=true": true,
	} {
		for _, segment := range []string{"sched", "slurm"} {
			w := serve(t, config(f), request(http.MethodGet, "/"+segment+"/v0.0.42/"+target, ""))
			var list struct {
				Jobs []struct {
					ID          uint32 `json:"job_id"`
					Explanation *explanation
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusOK || len(list.Jobs) == 0 {
				t.Fatalf("%s: status %d, %v: %s", target, w.Code, err, w.Body)
			}
			for _, j := range list.Jobs {
				switch expected := want[j.ID]; {
				case !explains || expected == nil:
					if j.Explanation != nil {
						t.Errorf("%s: job %d: %+v", target, j.ID, j.Explanation)
					}
				case j.Explanation == nil || *j.Explanation != *expected:
					t.Errorf("%s: job %d: %+v", target, j.ID, j.Explanation)
				}
			}
		}
	}
}

// limited returns a controller with jobs that wait for limits and other things of
// which the controller knows more than the jobs' records contain.
func limited() *fake {
	f := demo()
	f.tresNames = []string{"cpu", "mem", "node", "gres/gpu"}
	none := model.Infinite[uint64]()
	list := func(cpu uint64) []model.Opt[uint64] { return []model.Opt[uint64]{model.Some(cpu), none, none, none} }
	f.assocLimits = []model.AssocLimits{
		{Association: model.Association{ID: 1, Account: "root", GrpJobs: model.Infinite[uint32]()}},
		{Association: model.Association{ID: 2, Account: "physics", ParentID: 1, GrpJobs: model.Some[uint32](5)}, TRES: list(8), Usage: model.AssocUsage{Jobs: 5, TRES: []uint64{7, 900, 2, 0}}},
		{Association: model.Association{ID: 3, Account: "physics", User: "alice", ParentID: 2}, Usage: model.AssocUsage{Jobs: 1, TRES: []uint64{1, 0, 0, 0}}},
		{Association: model.Association{ID: 4, Account: "physics", User: "bob", ParentID: 2}, TRES: list(0)},
	}
	f.qosLimits = []model.QOSLimits{
		{QOS: model.QOS{Name: "normal", MaxJobsPU: model.Infinite[uint32]()}, MaxTRESPerUser: list(4), Usage: model.QOSUsage{Users: []model.UsedLimits{{UserID: 20002, TRES: []uint64{9}}, {UserID: 20001, TRES: []uint64{3}}}}},
		{QOS: model.QOS{Name: "ofpartition", MaxWallPJ: model.Some[uint32](90)}, MaxTRESPerUser: []model.Opt[uint64]{none}},
	}
	f.partitions[0].QOS = "ofpartition"
	f.licenses = []model.License{{Name: "matlab", Total: 10, InUse: 9, Reserved: 1}}
	f.priorities = []model.JobPriority{{StepID: model.StepID{JobID: 11}, Partition: "other"}, {StepID: model.StepID{JobID: 8}, Partition: f.partitions[0].Name, Age: 5, FairShare: 70}}
	f.nodes[0].Name, f.nodes[0].State, f.nodes[0].Reason = "n1", model.NodeIdle|model.NodeDrain, "bad disk"
	f.reservations = []model.Reservation{{Name: "maint", Nodes: "n1", StartTime: 1_800_000_000, EndTime: 1_800_003_600, Users: "bob"}}
	waiting := func(id, reason uint32, j model.Job) model.Job {
		j.StepID.JobID, j.State, j.StateReason, j.UserID, j.UserName, j.Account, j.AssocID, j.QOS = id, model.JobPending, reason, 20001, "alice", "physics", 3, "normal"
		j.Partition, j.TRESReq, j.Priority = f.partitions[0].Name, "cpu=2,mem=1G,node=1", 100-id
		return j
	}
	f.jobs = []model.Job{
		waiting(1, 52, model.Job{}),                                    // QOSMaxCpuPerUserLimit
		waiting(2, 57, model.Job{}),                                    // AssocGrpCpuLimit
		waiting(3, 60, model.Job{}),                                    // AssocGrpJobsLimit
		waiting(4, 51, model.Job{TimeLimit: model.Some[uint32](1500)}), // QOSMaxWallDurationPerJobLimit
		waiting(5, 10, model.Job{Licenses: "matlab:2"}),
		waiting(6, 15, model.Job{ReqNodes: "n1"}), // ReqNodeNotAvail
		waiting(7, 14, model.Job{Reservation: "maint"}),
		waiting(8, 1, model.Job{StartTime: 1_800_000_000}), // Priority
		waiting(9, 2, model.Job{Dependency: "singleton(unfulfilled)"}),
	}
	return f
}

// TestExplainNumbers checks the numbers in explanations, and that each kind of fact is
// requested at most once for an answer, with the client's credential, and only if it is
// needed.
func TestExplainNumbers(t *testing.T) {
	all := []string{"partitions", "limits", "licenses", "nodes", "reservations"}
	for _, tt := range []struct {
		target, id, why string
		calls           []string // in addition to those for the jobs
		contains        string
	}{
		{"job/1", "1", `All jobs of the user "alice" with the QOS "normal" together may use at most 4 CPUs at a time: they use 3, and this job asks for 2.`, []string{"partitions", "limits"},
			`"limit":{"name":"MaxTRESPerUser","resource":"cpu","of":"QOS normal","whose":"user alice","unit":"","allowed":4,"used":3,"requested":2}`},
		{"job/2", "2", `All jobs of the account "physics" together may use at most 8 CPUs at a time: they use 7, and this job asks for 2.`, []string{"limits"}, `"used":7`},
		{"job/3", "3", `At most 5 jobs of the account "physics" may run at a time, and 5 run now.`, []string{"limits"}, `"of":"account physics"`},
		{"job/4", "4", `A job with the QOS "ofpartition" may run for at most 1 hour 30 minutes, and this job asks for 1 day 1 hour.`, []string{"partitions", "limits"}, `"unit":"min","allowed":90,"requested":1500`},
		{"job/5", "5", "The job waits for licenses: of 10 licenses of matlab, 9 are in use, reservations hold 1, and this job asks for 2.", []string{"licenses"}, `"licenses":[{"name":"matlab","total":10,"used":9,"reserved":1,"requested":2}]`},
		{"job/6", "6", `A node that the job needs is not available: n1 is drained (the reason is "bad disk"); the reservation "maint" lasts from 2027-01-15 08:00:00 UTC to 2027-01-15 09:00:00 UTC, for bob.`, []string{"nodes", "reservations"},
			`"nodes":[{"name":"n1","state":"drained","reason":"bad disk"}]`},
		{"job/7", "7", "The job waits for the reservation \"maint\": it lasts from 2027-01-15 08:00:00 UTC to 2027-01-15 09:00:00 UTC, for bob.", []string{"reservations"}, `"reservation":{"name":"maint"`},
		{"job/8", "8", "Jobs with a higher priority come first: by priority, this job is number 8 of the 8 waiting jobs that you can see in the partition \"PARTITION\".", []string{"jobs", "priorities"},
			`"position":8,"waiting":8,"priority":92,"factors":{"age":5.0,"association":0.0,"fair_share":70.0,`},
		{"job/8", "8", "Jobs with", []string{"jobs", "priorities"}, `"expected_start":{"set":true,"infinite":false,"number":1800000000}`},
		{"job/9", "9", "The job waits for other jobs: the user's earlier jobs with the same name must end.", nil, ""},
		{"jobs", "1", `All jobs of the user "alice" with the QOS "normal" together may use at most 4 CPUs`, all, ""},
		{"jobs", "8", "number 8 of the 8", all, `"position":8,"waiting":8,"priority":92}`},
		{"jobs?fields=job_id", "8", "", nil, ""},
	} {
		t.Run(tt.target+" "+tt.id, func(t *testing.T) {
			f := limited()
			target := tt.target + "?explain=true"
			if strings.Contains(tt.target, "?") {
				target = tt.target + "&explain=true"
			}
			w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.43/"+target, ""))
			var body struct {
				Jobs []struct {
					ID          json.Number `json:"job_id"`
					Explanation struct{ Why string }
				}
				Warnings []json.RawMessage
			}
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != http.StatusOK || len(body.Warnings) > 0 {
				t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
			}
			why := strings.ReplaceAll(tt.why, "PARTITION", f.partitions[0].Name)
			for _, j := range body.Jobs {
				if j.ID.String() == tt.id && !strings.Contains(j.Explanation.Why, why) {
					t.Errorf("%q, want %q", j.Explanation.Why, why)
				}
			}
			if !strings.Contains(w.Body.String(), tt.contains) {
				t.Errorf("no %s in %s", tt.contains, w.Body)
			}
			calls := map[string]int{}
			for i, call := range f.calls {
				calls[call]++
				if call != "verify" && f.creds[i] != f.creds[len(f.creds)-1] {
					t.Errorf("%s with another credential", call)
				}
			}
			own := strings.SplitN(strings.SplitN(tt.target, "?", 2)[0], "/", 2)[0]
			for call, n := range calls {
				if call != "verify" && call != own && (n > 1 || !slices.Contains(tt.calls, call)) {
					t.Errorf("%d calls %s", n, call)
				}
			}
			for _, call := range tt.calls {
				if calls[call] == 0 {
					t.Errorf("no call %s in %q", call, f.calls)
				}
			}
		})
	}
}

// TestExplainWithoutFacts checks that explanations have only general sentences if the
// controller refuses or does not know the facts. Only a refusal is a warning, without its
// cause, which is not for clients.
func TestExplainWithoutFacts(t *testing.T) {
	for kind, warns := range map[errs.Kind]bool{errs.Unsupported: false, errs.Denied: true, errs.Unavailable: true} {
		f := limited()
		f.callErrs = map[string]error{}
		for _, call := range []string{"partitions", "limits", "licenses", "nodes", "reservations", "priorities"} {
			f.callErrs[call] = errs.Wrap(errors.New("dial tcp 192.0.2.7:6817"), kind, "no facts")
		}
		for _, target := range []string{"jobs", "job/1"} {
			w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.43/"+target+"?explain=true", ""))
			body := w.Body.String()
			if w.Code != http.StatusOK || !strings.Contains(body, `"why":"The user's jobs with this QOS use as many CPUs as they may together."`) {
				t.Errorf("%v, %s: status %d: %s", kind, target, w.Code, body)
			}
			if strings.Contains(body, "the explanations lack the use of limits: no facts") != warns || strings.Contains(body, "192.0.2.7") {
				t.Errorf("%v, %s: warnings in %s", kind, target, body)
			}
		}
	}
}

// TestExplainManyUsers checks that the associations of a few users are requested by
// name, and otherwise all.
func TestExplainManyUsers(t *testing.T) {
	for n, named := range map[int]bool{1: true, maxNamedUsers: true, maxNamedUsers + 1: false} {
		f := limited()
		f.jobs = f.jobs[:0]
		for i := range n {
			f.jobs = append(f.jobs, model.Job{StepID: model.StepID{JobID: uint32(i + 1)}, State: model.JobPending, StateReason: 57, UserID: uint32(30000 + i), AssocID: 3})
		}
		serve(t, config(f), request(http.MethodGet, "/sched/v0.0.43/jobs?explain=true", ""))
		if len(f.limitQueries) != 1 || (len(f.limitQueries[0].Users) == n) != named || !named && f.limitQueries[0].Users != nil {
			t.Errorf("%d users: %+v", n, f.limitQueries)
		}
	}
}

// TestExplainedEvents checks explanations in requests that wait, which have all
// numbers, and in streams, which have those in the records.
func TestExplainedEvents(t *testing.T) {
	t.Parallel()
	l, _, url := newLiving(t)
	next, _ := events(t, url+"/sched/v0.0.43/jobs?explain=true&partition=long&state=PENDING&fields=job_id,explanation.why")
	const first = `{"job_id":8,"explanation":{"why":"The scheduler has not looked at the job yet."}}`
	if got, _ := cutID(next()); got != `snapshot {"jobs":[`+first+`],"more":false}` {
		t.Errorf("event %q", got)
	}
	l.change(func(f *fake) { f.jobs[1].StateReason, f.jobs[1].ArrayMaxTasks = 72, 2 })
	if got, _ := cutID(next()); got != `changed {"job_id":8,"explanation":{"why":"As many tasks of this job array run as it permits: 2 at a time."}}` {
		t.Errorf("event %q", got)
	}
	l.change(func(f *fake) { f.jobs[1].StateReason, f.jobs[1].Priority = 3, 5 })
	if got, _ := cutID(next()); got != `changed {"job_id":8,"explanation":{"why":"The job waits until enough resources are free."}}` {
		t.Errorf("event %q", got)
	}
}
