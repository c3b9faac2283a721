package handlers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// TestChangeReservations checks that existing reservations are changed, and
// that others are created. An error must name the place in the body that it is
// about. An invalid reservation must not be sent to the controller.
func TestChangeReservations(t *testing.T) {
	const fresh = `"start_time": 1795000000, "duration": 60, "users": ["alice"]`
	denied := &errs.Error{Kind: errs.Denied, Message: "only operators may", Number: 2010}
	badTime := map[string]error{"r": &errs.Error{Kind: errs.Invalid, Message: "a time is invalid", Number: 2054}, "maint": &errs.Error{Kind: errs.Invalid, Message: "a time is invalid", Number: 2054}}
	for _, tt := range []struct {
		name, path, body string
		refuse           map[string]error
		status           int
		calls            []string // without the request for the existing reservations
		want             *model.ReservationUpdate
		wantText         string
	}{
		{name: "make", path: "reservation", body: `{"name": "r", ` + fresh + `, "node_count": 2}`, status: 200, calls: []string{"create reservation r"},
			want: &model.ReservationUpdate{Name: "r", StartTime: 1795000000, Duration: model.Some[uint32](60), Users: "alice", NodeCount: model.Some[uint32](2)}},
		{name: "make of a whole partition", path: "reservation", body: `{"name": "r", ` + fresh + `, "partition": "long", "flags": ["MAINT"]}`, status: 200, calls: []string{"create reservation r"},
			want: &model.ReservationUpdate{Name: "r", StartTime: 1795000000, Duration: model.Some[uint32](60), Users: "alice", Partition: "long", Nodes: "ALL", Flags: model.Some[uint64](1<<12 | 1)}},
		{name: "another case", path: "reservation", body: `{"name": "Maint", "comment": "c"}`, status: 422, wantText: "#/start_time"},
		{name: "make one whose name differs in case", path: "reservation", body: `{"name": "Maint", ` + fresh + `, "node_count": 2}`, status: 200, calls: []string{"create reservation Maint"},
			want: &model.ReservationUpdate{Name: "Maint", StartTime: 1795000000, Duration: model.Some[uint32](60), Users: "alice", NodeCount: model.Some[uint32](2)}},
		{name: "change", path: "reservation", body: `{"name": "maint", "comment": "c"}`, status: 200, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", Comment: "c"}},
		{name: "amounts", path: "reservation", body: `{"name": "maint", "tres": [{"type": "cpu", "count": 4}, {"type": "gres", "name": "gpu", "count": 1}]}`, status: 200, calls: []string{"update reservation maint"},
			want: &model.ReservationUpdate{Name: "maint", TRES: "cpu=4,gres/gpu=1"}},
		{name: "change nothing", path: "reservation", body: `{"name": "maint"}`, status: 200, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint"}, wantText: "nothing is changed"},
		{name: "empty texts", path: "reservation", body: `{"name": "maint", "comment": "", "users": "", "groups": ""}`, status: 200, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", Comment: model.Emptied, Users: model.Emptied, Groups: model.Emptied}},
		{name: "empty lists", path: "reservation", body: `{"name": "maint", "comment": "c", "users": [], "tres": [], "node_list": ""}`, status: 200, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", Comment: "c"}},
		{name: "infinitely many nodes", path: "reservation", body: `{"name": "maint", "node_count": "infinite"}`, status: 422, wantText: "#/node_count"},
		{name: "no nodes in a list", path: "reservation", body: `{"name": "maint", "comment": "c", "node_list": []}`, status: 200, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", Comment: "c"}},
		{name: "no end", path: "reservation", body: `{"name": "maint", "comment": "c", "end_time": "", "start_time": {"set": false}}`, status: 200, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", Comment: "c"}},
		{name: "ends at -1", path: "reservation", body: `{"name": "maint", "end_time": -1}`, status: 422, wantText: "#/end_time"},
		{name: "no partition", path: "reservation", body: `{"name": "weekly", "partition": ""}`, status: 422, wantText: "#/partition"},
		{name: "the same lack of a partition", path: "reservation", body: `{"name": "maint", "partition": "", "comment": "c"}`, status: 200, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", Comment: "c"}},
		{name: "flags of a new reservation", path: "reservation", body: `{"name": "maint", "flags": ["SPEC_NODES", "ALL_NODES", "FLEX", "DURATION_PLUS"]}`, status: 200, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", Flags: model.Some[uint64](1<<15 | 1<<19 | 1<<25 | 1<<27)}, wantText: "ALL_NODES, DURATION_PLUS: no effect"},
		{name: "two flags of which one is lost", path: "reservation", body: `{"name": "maint", "flags": ["STATIC", "MAINT"]}`, status: 200, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", Flags: model.Some[uint64](1<<10 | 1)}, wantText: `"warnings":[]`},
		{name: "never ends", path: "reservation", body: `{"name": "maint", "end_time": {"infinite": true}}`, status: 422, wantText: "#/end_time"},
		{name: "begins at 0", path: "reservation", body: `{"name": "maint", "start_time": 0}`, status: 422, wantText: "#/start_time"},
		{name: "no name", path: "reservation", body: `{` + fresh + `}`, status: 422, wantText: "needs a name"},
		{name: "no begin", path: "reservation", body: `{"name": "r", "duration": 60, "users": "alice"}`, status: 422, wantText: "#/start_time"},
		{name: "no end", path: "reservation", body: `{"name": "r", "start_time": 1795000000, "users": "alice"}`, status: 422, wantText: "#/duration"},
		{name: "ends first", path: "reservation", body: `{"name": "r", "start_time": 1795000000, "end_time": 1794000000, "users": "alice"}`, status: 422, wantText: "#/end_time"},
		{name: "two ends", path: "reservation", body: `{"name": "r", ` + fresh + `, "end_time": 1795009000}`, status: 422, wantText: "#/duration"},
		{name: "of nothing", path: "reservation", body: `{"name": "r", ` + fresh + `, "node_count": 0}`, status: 422, wantText: "a new reservation needs node_list, node_count"},
		{name: "of memory", path: "reservation", body: `{"name": "maint", "tres": [{"type": "mem", "count": 10}, {"type": "node", "count": 1}]}`, status: 200, calls: []string{"update reservation maint"},
			want: &model.ReservationUpdate{Name: "maint", TRES: "mem=10,node=1"}, wantText: `"mem: no effect on the reservation","source":"#/tres"`},
		{name: "for nobody", path: "reservation", body: `{"name": "r", "start_time": 1795000000, "duration": 60}`, status: 422, wantText: "#/users"},
		{name: "users and groups", path: "reservation", body: `{"name": "r", ` + fresh + `, "groups": ["wheel"]}`, status: 422, wantText: "#/groups"},
		{name: "a part of a partition", path: "reservation", body: `{"name": "r", ` + fresh + `, "flags": ["PART_NODES"]}`, status: 422, wantText: "#/flags"},
		{name: "refused", path: "reservation", body: `{"name": "maint", "comment": "c"}`, refuse: map[string]error{"maint": denied}, status: 403, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", Comment: "c"}, wantText: "reservation maint: you are not allowed to change it"},
		{name: "begins in the past", path: "reservation", body: `{"name": "r", "start_time": 1000, "end_time": 3000, "users": ["alice"], "node_count": 2}`, refuse: badTime, status: 422, calls: []string{"create reservation r"},
			want: &model.ReservationUpdate{Name: "r", StartTime: 1000, EndTime: 3000, Users: "alice", NodeCount: model.Some[uint32](2)}, wantText: `"reservation r: start_time lies in the past","error_number":2054,"error":"Invalid time specified","source":"#/start_time"`},
		{name: "floats and ends in the past", path: "reservation", body: `{"name": "r", "start_time": 1000, "end_time": 3000, "users": ["alice"], "node_count": 2, "flags": ["TIME_FLOAT"]}`, refuse: badTime, status: 422, calls: []string{"create reservation r"},
			want: &model.ReservationUpdate{Name: "r", StartTime: 1000, EndTime: 3000, Users: "alice", NodeCount: model.Some[uint32](2), Flags: model.Some[uint64](1 << 17)}, wantText: "#/end_time"},
		{name: "move to the past", path: "reservation", body: `{"name": "maint", "start_time": 1000}`, refuse: badTime, status: 422, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", StartTime: 1000}, wantText: "#/start_time"},
		{name: "end before the start", path: "reservation", body: `{"name": "maint", "end_time": 4000000000}`, refuse: badTime, status: 422, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", EndTime: 4000000000}, wantText: "#/name"},
		{name: "empty list", path: "reservations", body: `{"reservations": []}`, status: 200, wantText: "#/reservations"},
		{name: "no list", path: "reservations", body: `{}`, status: 422, wantText: "names no reservation"},
		{name: "some", path: "reservations", body: `{"reservations": [{"name": "maint", "comment": "c"}, {"name": "weekly", "comment": "c"}, {"name": "r", ` + fresh + `, "node_count": 1}]}`, refuse: map[string]error{"weekly": denied}, status: 403,
			calls: []string{"update reservation maint", "update reservation weekly", "create reservation r"}, want: &model.ReservationUpdate{Name: "maint", Comment: "c"}, wantText: "#/reservations/1/name"},
		{name: "none", path: "reservations", body: `{"reservations": [{"name": "maint", "comment": "c"}, {"name": "weekly", "comment": "c"}]}`, refuse: map[string]error{"maint": denied, "weekly": denied}, status: 403,
			calls: []string{"update reservation maint", "update reservation weekly"}, want: &model.ReservationUpdate{Name: "maint", Comment: "c"}, wantText: "reservation weekly: "},
		{name: "unknown outcome", path: "reservations", body: `{"reservations": [{"name": "maint", "comment": "c"}, {"name": "weekly", "comment": "c"}]}`,
			refuse: map[string]error{"maint": &errs.Error{Kind: errs.BadAnswer, Message: "no answer came", Code: errs.OutcomeUnknown}}, status: 502, calls: []string{"update reservation maint"}, want: &model.ReservationUpdate{Name: "maint", Comment: "c"}, wantText: "outcome_unknown"},
		{name: "one named twice", path: "reservations", body: `{"reservations": [{"name": "maint", "comment": "c"}, {"name": "maint", "comment": "d"}]}`, status: 422, wantText: "#/reservations/1/name"},
		{name: "unknown outcome of the second", path: "reservations", body: `{"reservations": [{"name": "maint", "comment": "c"}, {"name": "weekly", "comment": "c"}, {"name": "third", "comment": "d"}]}`,
			refuse: map[string]error{"weekly": &errs.Error{Kind: errs.BadAnswer, Message: "no answer came", Code: errs.OutcomeUnknown}}, status: 502, calls: []string{"update reservation maint", "update reservation weekly"}, want: &model.ReservationUpdate{Name: "maint", Comment: "c"}, wantText: "not tried"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.refusals = tt.refuse
			f.reservations[1].Partition = "long"
			w := serve(t, config(f), request("POST", "/slurm/v0.0.45/"+tt.path, tt.body))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.wantText) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			var got *model.ReservationUpdate
			if len(f.reservationUpdates) > 0 {
				got = f.reservationUpdates[0]
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tt.calls, changeCalls(f)); d != "" {
				t.Error(d)
			}
		})
	}
}

// changeCalls returns the calls that changed something.
func changeCalls(f *fake) []string {
	var list []string
	for _, call := range f.calls {
		for _, verb := range []string{"create ", "update ", "delete "} {
			if strings.HasPrefix(call, verb) {
				list = append(list, call)
			}
		}
	}
	return list
}

// TestChangePartitions checks for partitions what TestChangeReservations checks
// for reservations.
func TestChangePartitions(t *testing.T) {
	denied := &errs.Error{Kind: errs.Denied, Message: "only administrators may", Number: 2010}
	for _, tt := range []struct {
		name, method, path, body string
		refused                  error
		refuse                   map[string]error
		status                   int
		calls                    []string
		want                     *model.PartitionUpdate
		wantText                 string
	}{
		{name: "make", body: `{"partitions": [{"name": "new", "nodes": {"configured": "n1"}, "node_sets": "big"}]}`, status: 200, calls: []string{"create partition new"}, want: &model.PartitionUpdate{Name: "new", Nodes: "n1,big"}},
		{name: "make with all nodes, as shown", body: `{"partitions": [{"name": "new", "nodes": {"configured": "n1"}, "node_sets": "ALL"}]}`, status: 200, calls: []string{"create partition new"}, want: &model.PartitionUpdate{Name: "new", Nodes: "n1"}},
		{name: "make with all nodes", body: `{"partitions": [{"name": "new", "node_sets": "ALL"}]}`, status: 200, calls: []string{"create partition new"}, want: &model.PartitionUpdate{Name: "new", Nodes: "ALL"}},
		{name: "capitals count", body: `{"partitions": [{"name": "Debug", "alternate": "long"}]}`, status: 200, calls: []string{"create partition Debug"}, want: &model.PartitionUpdate{Name: "Debug", Alternate: "long"}},
		{name: "change", body: `{"partitions": [{"name": "debug", "partition": {"state": ["DRAIN"], "exclusive": "USER", "oversubscribe": "FORCE:2"}, "preempt_mode": ["CANCEL"], "defaults": {"partition_memory_per_cpu": 512, "time": 10}, "minimums": {"nodes": 0}}]}`, status: 200, calls: []string{"update partition debug"},
			want: &model.PartitionUpdate{Name: "debug", StateUp: model.Some[uint16](2), Flags: 0x20040, MaxShare: model.Some(shareForced | uint16(2)), PreemptMode: model.Some[uint16](8), DefMemPerCPU: model.Some(512 | model.MemPerCPU), DefaultTime: model.Some[uint32](10), MinNodes: model.Some[uint32](0)}},
		{name: "alone", body: `{"partitions": [{"name": "debug", "partition": {"exclusive": "NODE", "oversubscribe": "NO"}, "flags": ["LLN_CLEAR"]}]}`, status: 200, calls: []string{"update partition debug"},
			want: &model.PartitionUpdate{Name: "debug", Flags: 0x26000, MaxShare: model.Some[uint16](0)}},
		{name: "not alone", body: `{"partitions": [{"name": "debug", "partition": {"oversubscribe": "YES", "exclusive": "NO"}}]}`, status: 200, calls: []string{"update partition debug"},
			want: &model.PartitionUpdate{Name: "debug", Flags: 0x24000, MaxShare: model.Some[uint16](4)}},
		{name: "what is worked out", body: `{"partitions": [{"name": "debug", "alternate": "long", "nodes": {"total": 9}, "suspend_time": 5}]}`, status: 200, calls: []string{"update partition debug"}, want: &model.PartitionUpdate{Name: "debug", Alternate: "long"}},
		{name: "change nothing", body: `{"partitions": [{"name": "debug", "nodes": {"total": 9}}]}`, status: 200, calls: []string{"update partition debug"}, want: &model.PartitionUpdate{Name: "debug"}, wantText: "nothing is changed"},
		{name: "empty texts", body: `{"partitions": [{"name": "debug", "alternate": "", "qos": {"assigned": ""}}]}`, status: 200, calls: []string{"update partition debug"}, want: &model.PartitionUpdate{Name: "debug", Alternate: model.Emptied, QOS: model.Emptied}},
		{name: "no name", body: `{"partitions": [{"alternate": "long"}]}`, status: 422, wantText: "#/partitions/0/name"},
		{name: "empty list", body: `{"partitions": []}`, status: 200, wantText: "#/partitions"},
		{name: "bad word", body: `{"partitions": [{"name": "debug", "partition": {"exclusive": "ALL"}}]}`, status: 422, wantText: "expected NODE, USER, TOPO or NO"},
		{name: "no action", body: `{"partitions": [{"name": "debug", "alternate": "long", "preempt_mode": [], "partition": {"state": []}}]}`, status: 200, calls: []string{"update partition debug"}, want: &model.PartitionUpdate{Name: "debug", Alternate: "long"}},
		{name: "a default beyond the limit", body: `{"partitions": [{"name": "debug", "maximums": {"time": 30}, "defaults": {"time": 31}}]}`, status: 422, wantText: "#/partitions/0/defaults/time"},
		{name: "a default without end", body: `{"partitions": [{"name": "debug", "maximums": {"time": 30}, "defaults": {"time": {"infinite": true}}}]}`, status: 422, wantText: "#/partitions/0/defaults/time"},
		{name: "a default beyond the present limit", body: `{"partitions": [{"name": "limited", "defaults": {"time": 61}}]}`, status: 422, wantText: "#/partitions/0/defaults/time"},
		{name: "a default at the present limit", body: `{"partitions": [{"name": "limited", "defaults": {"time": 60}}]}`, status: 200, calls: []string{"update partition limited"}, want: &model.PartitionUpdate{Name: "limited", DefaultTime: model.Some[uint32](60)}},
		{name: "a default of a new partition", body: `{"partitions": [{"name": "new", "defaults": {"time": {"infinite": true}}}]}`, status: 200, calls: []string{"create partition new"}, want: &model.PartitionUpdate{Name: "new", DefaultTime: model.Infinite[uint32]()}},
		{name: "two actions", body: `{"partitions": [{"name": "debug", "preempt_mode": ["SUSPEND", "CANCEL"]}]}`, status: 422, wantText: "#/partitions/0/preempt_mode"},
		{name: "bad number", body: `{"partitions": [{"name": "debug", "partition": {"oversubscribe": "YES:0"}}]}`, status: 422, wantText: "number of jobs"},
		{name: "not to be set", body: `{"partitions": [{"name": "long", "alternate": "debug", "preempt_mode": ["CLUSTER_GLOBAL"]}]}`, status: 200, calls: []string{"update partition long"}, want: &model.PartitionUpdate{Name: "long", Alternate: "debug"}, wantText: "#/partitions/0/preempt_mode"},
		{name: "not to be set, as in an answer", body: `{"partitions": [{"name": "debug", "alternate": "long", "preempt_mode": ["CLUSTER_GLOBAL"]}]}`, status: 200, calls: []string{"update partition debug"}, want: &model.PartitionUpdate{Name: "debug", Alternate: "long"}, wantText: `"warnings":[]`},
		{name: "not to be set, either", body: `{"partitions": [{"name": "debug", "partition": {"state": ["UNKNOWN"]}}]}`, status: 422, wantText: "can't be set"},
		{name: "some", body: `{"partitions": [{"name": "debug", "alternate": "long"}, {"name": "long", "alternate": "debug"}]}`, refuse: map[string]error{"long": denied}, status: 403, calls: []string{"update partition debug", "update partition long"},
			want: &model.PartitionUpdate{Name: "debug", Alternate: "long"}, wantText: "partition debug was changed, although another was not"},
		{name: "delete", method: "DELETE", path: "partition/long", status: 200, calls: []string{"delete partition long"}},
		{name: "delete an unknown one", method: "DELETE", path: "partition/p9", refused: &errs.Error{Kind: errs.Invalid, Message: "there is no such partition", Number: 2000}, status: 404, calls: []string{"delete partition p9"}, wantText: "partition p9: "},
		{name: "delete one in use", method: "DELETE", path: "partition/long", refused: &errs.Error{Kind: errs.Conflict, Message: "the partition is in use", Number: 2075}, status: 409, calls: []string{"delete partition long"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.refusals, f.submitErr = tt.refuse, tt.refused
			f.partitions = append(f.partitions, model.Partition{Name: "limited", MaxTime: model.Some[uint32](60)})
			method, path := tt.method, tt.path
			if method == "" {
				method, path = "POST", "partitions"
			}
			w := serve(t, config(f), request(method, "/slurm/v0.0.45/"+path, tt.body))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.wantText) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			var got *model.PartitionUpdate
			if len(f.partitionUpdates) > 0 {
				got = f.partitionUpdates[0]
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tt.calls, changeCalls(f)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestResources tests requests for the resources of jobs. For an unknown job,
// the answer must be a 404 that names the job. A request for a single array
// task must be refused rather than answered for the whole array.
func TestResources(t *testing.T) {
	f := demo()
	f.submitErr = &errs.Error{Kind: errs.NotFound, Message: "there is no such job", Number: 2017}
	if w := serve(t, config(f), request("GET", "/slurm/v0.0.45/resources/99", "")); w.Code != 404 || !strings.Contains(w.Body.String(), "job 99: ") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	f = demo()
	if w := serve(t, config(f), request("GET", "/slurm/v0.0.45/resources/12_3", "")); w.Code != 422 || len(changeCalls(f)) > 0 {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// TestUnchangedResources sends the resources of an existing reservation back,
// as a client does that changes only one field of an answer. slurmctld must
// receive only the resources that differ: it refuses a change of several, and
// would choose other nodes for some.
func TestUnchangedResources(t *testing.T) {
	held := model.Reservation{Name: "r", Nodes: "n[1-2]", NodeCount: 2, Cores: 8, TRES: "cpu=8"}
	for _, tt := range []struct {
		name, resources string
		want            model.ReservationUpdate
	}{
		{"unchanged", `"node_list": "n[1-2]", "node_count": {"set": true, "number": 2}, "core_count": 8, "tres": "cpu=8", "partition": ""`, model.ReservationUpdate{}},
		{"more nodes", `"node_count": 3, "core_count": 8, "tres": "cpu=8"`, model.ReservationUpdate{NodeCount: model.Some[uint32](3)}},
		{"other nodes", `"node_list": ["n3"], "core_count": 8`, model.ReservationUpdate{Nodes: "n3"}},
		{"other resources", `"core_count": 9, "tres": [{"type": "cpu", "count": 4}], "partition": "long"`,
			model.ReservationUpdate{Cores: model.Some[uint32](9), TRES: "cpu=4", Partition: "long"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.reservations = []model.Reservation{held}
			w := serve(t, config(f), request("POST", "/slurm/v0.0.45/reservation", `{"name": "r", "comment": "c", `+tt.resources+`}`))
			tt.want.Name, tt.want.Comment = "r", "c"
			if d := cmp.Diff([]*model.ReservationUpdate{&tt.want}, f.reservationUpdates); w.Code != 200 || d != "" {
				t.Errorf("status %d, %s%s", w.Code, d, w.Body)
			}
		})
	}
}
