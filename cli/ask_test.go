package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/model"
)

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// randomSite returns a site with random jobs, nodes and partitions.
func randomSite(r *rand.Rand) *site {
	s := &site{}
	base := []model.JobState{model.JobPending, model.JobRunning, model.JobSuspended, model.JobComplete, model.JobFailed, model.JobCancelled, model.JobTimeout}
	flags := []model.JobState{0, 0, 0, model.JobCompleting, model.JobRequeued, model.JobConfiguring, model.JobRequeueHold, model.JobStageOut}
	job := func(id int) model.Job {
		j := model.Job{StepID: model.StepID{JobID: uint32(id)}, UserID: pick(r, uint32(1001), 1002, 1003, 4711), Account: pick(r, "a", "b", ""),
			Partition: pick(r, "cpu", "gpu", "cpu,gpu"), Name: pick(r, "train", "test", "a b", "x,y"), State: pick(r, base...) | pick(r, flags...),
			Nodes: pick(r, "", "n1", "n[2-4]", "n[1,3]"), NumCPUs: uint32(r.IntN(5)), NumNodes: uint32(r.IntN(3)), QOS: "normal", Priority: uint32(id),
			TimeLimit: model.Some(uint32(r.IntN(100))), StateReason: uint32(r.IntN(3)), TRESReq: pick(r, "cpu=1", "cpu=1,gres/gpu=2")}
		if j.State&0xff > model.JobSuspended { // the run time of others depends on the clock
			j.StartTime, j.EndTime = model.Time(100+r.IntN(9)), model.Time(200+r.IntN(9))
		}
		return j
	}
	for id := 1; id <= 30; id++ {
		j := job(id)
		if id%10 == 0 { // the pending tasks of an array; the tasks that have started follow
			j.ArrayJobID, j.ArrayTasks, j.State = uint32(id), "0x60", model.JobPending
			s.jobs = append(s.jobs, j)
			for task := range 3 {
				t := job(id*10 + task)
				t.UserID, t.ArrayJobID, t.ArrayTaskID = j.UserID, uint32(id), model.Some(uint32(task))
				s.jobs = append(s.jobs, t)
			}
			continue
		}
		s.jobs = append(s.jobs, j)
	}
	for i := range 6 {
		s.nodes = append(s.nodes, model.Node{Name: fmt.Sprint("n", i), CPUs: 8, EffectiveCPUs: 8, AllocCPUs: uint16(r.IntN(9)), Memory: 1000,
			State: pick(r, model.NodeIdle, model.NodeAllocated, model.NodeMixed, model.NodeDown) | pick(r, 0, 0, model.NodeDrain, model.NodeMaint),
			GRES:  "gpu:2", GRESUsed: pick(r, "gpu:0", "gpu:1"), Reason: pick(r, "", "bad disk")})
	}
	s.partitions = []model.Partition{{Name: "cpu", Nodes: "n[0-3]", TotalNodes: 4, StateUp: 3}, {Name: "gpu", Nodes: "n[3-5]", TotalNodes: 3, StateUp: 3, MaxTime: model.Some(uint32(90))}}
	return s
}

// randomCommand returns the arguments of a random command that reads a list.
func randomCommand(r *rand.Rand) []string {
	options := func(args []string, all map[string][]string) []string {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if r.IntN(4) > 0 {
				continue
			}
			args = append(args, name)
			if values := all[name]; values != nil {
				args = append(args, pick(r, values...))
			}
		}
		return args
	}
	selection := map[string][]string{"--me": nil, "--user": {"ann", "bob,carol", "4711", "nobody"}, "--state": {"R", "PENDING", "CG,F", "all", "SI"}, "--partition": {"cpu", "gpu,x"},
		"--account": {"a", "a,b"}, "--name": {"train", "test,a b", `"x,y"`}, "--node": {"n1", "n[2-9]", "n4,n1"}}
	shown := func(args []string, columns []string) []string {
		switch r.IntN(4) {
		case 0:
			return append(args, "-o", pick(r, "json", "yaml", "wide"))
		case 1:
			return append(args, "--columns", pick(r, columns...)+","+pick(r, columns...), "--sort", "-"+pick(r, columns...))
		}
		return args
	}
	ids := func(args []string) []string {
		for range r.IntN(3) {
			args = append(args, pick(r, "1", "2", "10", "10_1", "10_5", "20_[5-6]", "201", "99"))
		}
		return args
	}
	jobs := (&listing[*rest.Job]{columns: jobColumns()}).names()
	nodes := (&listing[*rest.Node]{columns: nodeColumns()}).names()
	switch r.IntN(8) {
	case 0, 1:
		return shown(options([]string{"jobs"}, selection), jobs)
	case 2:
		return shown(options([]string{"nodes"}, map[string][]string{"n1": nil, "n[2-3]": nil, "n99": nil, "--state": {"IDLE", "drain,DOWN", "MIXED"}, "--partition": {"cpu", "cpu,gpu"}}), nodes)
	case 3:
		return shown(options([]string{"partitions"}, map[string][]string{"cpu": nil, "gpu": nil, "x": nil}), []string{"name", "limit", "nodes", "gpus", "cpus"})
	case 4:
		return options([]string{"top", "--once"}, selection)
	case 5:
		return pick(r, []string{"show", "job"}, []string{"show", "node"}, []string{"__complete", "cancel", ""}, []string{"__complete", "watch", "--user", "bob", ""},
			[]string{"__complete", "nodes", ""}, []string{"__complete", "job", ""})
	case 6:
		return ids(options([]string{"cancel", "--dry-run"}, selection))
	}
	return ids(options([]string{"cancel"}, selection))
}

// TestSameForAllServers runs random commands with three servers: one that
// supports filters and fields, one that ignores them, and one that refuses them.
// The commands must print the same, and cancel the same jobs.
func TestSameForAllServers(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		s := randomSite(r)
		for range 5 {
			args := randomCommand(r)
			type result struct {
				Status      int
				Out, ErrOut string
				Killed      []string
			}
			var want result
			for _, support := range []support{ignores, supports, refuses} {
				s.support = support
				var got result
				got.Status, got.Out, got.ErrOut = s.run(t, args...)
				if got.Killed = s.killed; args[0] == "top" {
					_, got.Out, _ = strings.Cut(got.Out, "\n") // the first line has the time and the address
				}
				if support == ignores {
					want = got
				} else if diff := gocmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d: %q, server %s: -without parameters +with\n%s\nasked for %q", seed, args, support, diff, s.asked("jobs"))
				}
			}
		}
	}
}

// TestRequests checks what commands request from a server that supports
// filters and fields, and that the controller is asked for the jobs of one user.
func TestRequests(t *testing.T) {
	const key = "array_job_id,array_task_id,array_task_string"
	const active = "&state=PENDING,RUNNING,SUSPENDED,COMPLETING,REQUEUED"
	const columns = "cpus,end_time,het_job_id,het_job_offset,job_id,job_state,name,node_count,nodes,partition,pre_sus_time,start_time,state_description,state_reason,suspend_time,time_limit,user_name"
	for _, tt := range []struct {
		args    string
		list    string
		want    []string
		oneUser bool
	}{
		{"jobs", "jobs", []string{"fields=" + key + "," + columns + active}, false},
		{"jobs --me --state running", "jobs", []string{"fields=" + key + "," + columns + "&state=RUNNING&users=ann"}, true},
		{"jobs -a -u ann,bob --columns jobid,limit --sort -priority", "jobs", []string{"fields=" + key + ",het_job_id,het_job_offset,job_id,job_state,priority,time_limit,user_name&users=ann,bob"}, false},
		{"jobs -a -u 1001", "jobs", []string{"fields=" + key + "," + columns}, false}, // a name or a uid
		{"jobs -a -A a -p cpu,gpu -n train -w n[1-3] -o json", "jobs", []string{"account=a&job_name=train&node=n[1-3]&partition=cpu,gpu"}, false},
		{`jobs -a -n "x,y" -o yaml`, "jobs", []string{""}, false},
		{"jobs -a -o json -n " + strings.Repeat("x", maxCondition+1), "jobs", []string{""}, false},
		{"nodes n1 n2 --state IDLE --columns gpus", "nodes", []string{"fields=gres,gres_used,name,partitions,state&node=n[1-2]"}, false},
		{"nodes -p cpu -t DRAIN -o json", "nodes", []string{"partition=cpu&state=DRAIN"}, false},
		{"partitions cpu", "partitions", []string{"fields=cpus.total,defaults.time,flags,maximums.time,name,nodes.configured,partition.state"}, false},
		{"partitions cpu", "nodes", []string{"fields=" + loadFields + ",partitions&partition=cpu"}, false},
		{"partitions", "nodes", []string{"fields=" + loadFields + ",partitions"}, false},
		{"top --once --me", "jobs", []string{"fields=" + key + "," + columns + active + "&users=ann"}, true},
		{"top --once", "nodes", []string{"fields=" + loadFields}, false},
		{"show job", "jobs", []string{"fields=job_id,name,user_name,job_state,cpus,time_limit,exit_code.return_code,state_reason"}, false},
		{"show node", "nodes", []string{"fields=name,state,cpus,alloc_cpus,real_memory,free_mem,reason"}, false},
		{"__complete cancel ", "jobs", []string{"fields=" + key + ",het_job_id,het_job_offset,job_id,job_state,name,user_name" + active + "&users=ann"}, true},
		{"__complete job ", "jobs", []string{"fields=" + key + ",het_job_id,het_job_offset,job_id,job_state,name,user_name&users=ann"}, true},
		{"__complete nodes ", "nodes", []string{"fields=name,state"}, false},
		{"cancel --user ann --state PENDING --dry-run", "jobs", []string{"users=ann"}, true}, // another state would hide tasks of the array
		{"cancel 1 10_1 --me --dry-run", "jobs", []string{"job_id=1,10_1"}, false},
		{"cancel --partition cpu --dry-run", "jobs", []string{""}, false},
	} {
		s := randomSite(rand.New(rand.NewPCG(1, 2)))
		s.jobs[0].UserID, s.jobs[0].State = 1001, model.JobRunning
		status, _, errOut := s.run(t, strings.Split(tt.args, " ")...)
		if diff := gocmp.Diff(tt.want, s.asked(tt.list)); diff != "" || status != 0 {
			t.Errorf("%s: status %d, %s -want +got\n%s", tt.args, status, errOut, diff)
		}
		for _, r := range s.requests {
			wantCache := ""
			if strings.HasPrefix(tt.args, "cancel") {
				wantCache = "no-cache" // a change must not rely on the state of a minute ago
			}
			if r.status != 200 || r.cache != wantCache {
				t.Errorf("%s: status %d and Cache-Control %q for %v", tt.args, r.status, r.cache, r.query)
			}
		}
		if oneUser := slices.ContainsFunc(s.queries, func(q model.Query) bool { return q.User == model.Some(uint32(1001)) }); oneUser != tt.oneUser {
			t.Errorf("%s: the controller was asked for %+v", tt.args, s.queries)
		}
	}
}

// TestColumnFields checks that each cell is the same if its object has only the
// fields that the column needs, and that all API versions have these fields.
func TestColumnFields(t *testing.T) {
	number := func(n int) map[string]any { return map[string]any{"set": true, "infinite": false, "number": n} }
	job := map[string]any{"job_id": 5, "array_job_id": number(4), "array_task_id": number(1), "array_task_string": "", "partition": "cpu", "name": "train", "user_name": "ann", "account": "a",
		"qos": "q", "job_state": []string{"FAILED"}, "start_time": number(100), "end_time": number(200), "time_limit": number(7), "node_count": number(2), "cpus": number(8),
		"tres_alloc_str": "gres/gpu=2", "tres_req_str": "gres/gpu=3", "memory_per_node": number(5), "memory_per_cpu": number(0), "priority": number(9), "submit_time": number(50),
		"exit_code": map[string]any{"return_code": number(3)}, "nodes": "n1", "state_reason": "Why", "state_description": "details"}
	node := map[string]any{"name": "n1", "state": []string{"IDLE"}, "cpus": 8, "alloc_cpus": 2, "cpu_load": 150, "real_memory": 1000, "free_mem": number(900), "gres": "gpu:2", "gres_used": "gpu:1",
		"partitions": []string{"cpu"}, "reason": "why", "alloc_memory": 100}
	partition := map[string]any{"name": "cpu", "partition": map[string]any{"state": []string{"UP"}}, "maximums": map[string]any{"time": number(5)}, "defaults": map[string]any{"time": number(4)},
		"cpus": map[string]any{"total": 8}, "nodes": map[string]any{"configured": "n1", "total": 1}}
	checkColumns(t, api.Jobs, job, jobColumns(), func(j *rest.Job) *rest.Job { return j })
	checkColumns(t, api.Nodes, node, nodeColumns(), func(n *rest.Node) *rest.Node { return n })
	checkColumns(t, api.Partitions, partition, partitionColumns(), func(p *rest.Partition) *partitionRow { return &partitionRow{Partition: p} })
	for _, fields := range []string{jobKey, summaryFields} {
		checkPaths(t, api.Jobs, fields)
	}
	checkPaths(t, api.Nodes, loadFields)
}

// checkPaths checks that all API versions have the fields.
func checkPaths(t *testing.T, answer api.AnswerTable, fields string) {
	t.Helper()
	for _, v := range api.Versions {
		if v < api.V42 {
			continue
		}
		if _, err := answer.Select(schema.View{Version: v}, strings.Split(fields, ",")); err != nil {
			t.Errorf("%s: %s: %v", v, fields, err)
		}
	}
}

func checkColumns[T, R any](t *testing.T, answer api.AnswerTable, object map[string]any, columns []column[*R], row func(*T) *R) {
	t.Helper()
	cell := func(c column[*R], object map[string]any) table.Cell {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		v := new(T)
		if err := json.Unmarshal(text, v); err != nil {
			t.Fatal(err)
		}
		return c.cell(row(v))
	}
	for _, c := range columns {
		part, paths := map[string]any{}, uniqueFields([]string{c.fields})
		for _, path := range paths {
			member, rest, nested := strings.Cut(path, ".")
			part[member] = object[member]
			if nested {
				part[member] = map[string]any{rest: object[member].(map[string]any)[rest]}
			}
		}
		if len(paths) == 0 { // a column that other objects fill
			continue
		}
		want, got := cell(c, object), cell(c, part)
		if want != got || want.Text == "" || want == cell(c, map[string]any{}) {
			t.Errorf("%s: %+v with all fields, %+v with %s, %+v without", c.name, want, got, c.fields, cell(c, map[string]any{}))
		}
		checkPaths(t, answer, strings.Join(paths, ","))
	}
}

// TestVerbose checks that --verbose prints the requests, and says whether the
// server supports filters and fields. A command asks a server that does not only
// once.
func TestVerbose(t *testing.T) {
	const whole = "request: GET /slurm/v0.0.45/jobs/\n"
	for _, tt := range []struct {
		support  support
		requests int
		want     []string
		others   string // must not be printed
	}{
		{supports, 2, []string{"request: GET /slurm/v0.0.45/jobs/?fields=", "&users=ann\n", "answer: 200 OK\n"}, "note: "},
		{ignores, 2, []string{"&users=ann\n", "note: the server did not apply all options; schedctl left "}, whole},
		{refuses, 3, []string{"answer: 422 Unprocessable Entity\n", "note: the server refuses the parameters, so schedctl requests whole lists", whole}, "jobs/?"},
	} {
		s := randomSite(rand.New(rand.NewPCG(3, 4)))
		s.support = tt.support
		status, _, errOut := s.run(t, "top", "--once", "--me", "--verbose")
		for _, want := range tt.want {
			if !strings.Contains(errOut, want) {
				t.Errorf("%s: no %q in\n%s", tt.support, want, errOut)
			}
		}
		if status != 0 || len(s.requests) != tt.requests || strings.Contains(errOut, tt.others) || strings.Contains(errOut, "eyJ") {
			t.Errorf("%s: status %d, %d requests\n%s", tt.support, status, len(s.requests), errOut)
		}
	}
}

// TestTopAgain checks that top keeps what it shows if nothing has changed, and
// shows changes.
func TestTopAgain(t *testing.T) {
	for _, support := range []support{supports, ignores, refuses} {
		s := randomSite(rand.New(rand.NewPCG(5, 6)))
		s.support = support
		server := httptest.NewServer(s.handler())
		defer server.Close()
		client, err := rest.Dial(t.Context(), rest.Config{URL: server.URL, Token: testToken})
		if err != nil {
			t.Fatal(err)
		}
		o := newOverview(&connection{Client: client, log: func(string, ...any) {}}, &filter{})
		show := func() string {
			t.Helper()
			if err := o.update(t.Context()); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := o.print(&b, table.Style{}, 1000); err != nil {
				t.Fatal(err)
			}
			_, text, _ := strings.Cut(b.String(), "\n")
			return text
		}
		first := show()
		if again := show(); again != first {
			t.Errorf("%s: the second time\n%sthe first time\n%s", support, again, first)
		}
		s.jobs = append(s.jobs, model.Job{StepID: model.StepID{JobID: 77}, Name: "new", NumCPUs: 99, State: model.JobRunning})
		s.nodes[0].EffectiveCPUs = 1000
		if changed := show(); !strings.Contains(changed, "\n77 ") || strings.Split(changed, "\n")[1] == strings.Split(first, "\n")[1] {
			t.Errorf("%s: no change in\n%s", support, changed)
		}
		var statuses []int
		for _, r := range s.requests {
			statuses = append(statuses, r.status)
		}
		want := map[string][]int{"supports": {200, 200, 304, 304, 200, 200}, "ignores": {200, 200, 200, 200, 200, 200}, "refuses": {422, 200, 200, 200, 200, 200, 200}}
		if !slices.Equal(statuses, want[support.String()]) {
			t.Errorf("%s: statuses %v", support, statuses)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestWatchAll checks that watch prints each change of the selected jobs once,
// and that it asks for the jobs only if they have changed.
func TestWatchAll(t *testing.T) {
	for _, support := range []support{supports, ignores, refuses, waits} {
		s := randomSite(rand.New(rand.NewPCG(7, 8)))
		s.support, s.jobs = support, []model.Job{
			{StepID: model.StepID{JobID: 1}, Name: "mine", UserID: 1001, State: model.JobPending},
			{StepID: model.StepID{JobID: 2}, Name: "other", UserID: 1002, State: model.JobPending},
			{StepID: model.StepID{JobID: 3}, Name: "old", UserID: 1001, State: model.JobFailed},
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		step := func(n int) { // called before each answer, with the lock held
			switch n {
			case 3:
				s.jobs[0].State, s.jobs[1].State = model.JobRunning, model.JobRunning
			case 5:
				s.jobs[0].State = model.JobComplete
			case 7:
				cancel()
			}
		}
		var out bytes.Buffer
		to := writerFunc(out.Write)
		if s.each = step; support == waits { // each change follows when the last one was printed
			reads := 0
			s.each = func(int) { reads = 0 }
			s.read = func(int) {
				if reads++; s.count == 2 && reads == 4 {
					step(3)
				}
			}
			to = func(line []byte) (int, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				switch {
				case bytes.Contains(line, []byte("RUNNING")):
					step(5)
				case bytes.Contains(line, []byte("COMPLETED")):
					step(7)
				}
				return out.Write(line)
			}
		}
		server := httptest.NewServer(s.handler())
		defer server.Close()
		client, err := rest.Dial(ctx, rest.Config{URL: server.URL, Token: testToken})
		if err != nil {
			t.Fatal(err)
		}
		err = (&connection{Client: client, log: func(string, ...any) {}, warn: func(string, ...any) {}}).watchAll(ctx, &filter{users: []string{"ann"}}, time.Millisecond, newChangePrinter(to, cancel))
		var lines []string
		for line := range strings.Lines(out.String()) {
			lines = append(lines, strings.Join(strings.Fields(line)[1:], " "))
		}
		if diff := gocmp.Diff([]string{"1 mine PENDING", "1 mine RUNNING", "1 mine COMPLETED"}, lines); diff != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, -want +got\n%s", support, err, diff)
		}
		var statuses []int
		s.mu.Lock()
		for _, r := range s.requests {
			statuses = append(statuses, r.status)
		}
		s.mu.Unlock()
		want := map[string][]int{"supports": {200, 304, 200, 304, 200, 304}, "ignores": {200, 200, 200, 200, 200, 200}, "refuses": {422, 200, 200, 200, 200, 200}, "waits": {200, 200}}[support.String()]
		if !slices.Equal(statuses[:min(len(statuses), len(want))], want) || support == waits && (len(statuses) != 2 || !s.requests[1].events) {
			t.Errorf("%s: statuses %v", support, statuses)
		}
	}
}

// TestWatchJob checks that watch requests only some fields of a job, and only if
// they have changed.
func TestWatchJob(t *testing.T) {
	hurry(t)
	for _, support := range []support{supports, ignores, refuses, waits} {
		s := &site{support: support, jobs: []model.Job{{StepID: model.StepID{JobID: 1}, Name: "mine", UserID: 1001, State: model.JobPending}}}
		change := func(n int) { // called with the lock held
			if n == 3 {
				s.jobs[0].State, s.jobs[0].ExitCode = model.JobFailed, 7<<8
			}
		}
		if s.each = change; support == waits {
			s.each, s.read = nil, change // during the second request
		}
		status, out, errOut := s.run(t, "watch", "1")
		if lines := strings.Split(out, "\n"); status != 7 || len(lines) != 3 || !strings.HasSuffix(lines[0], "PENDING") || !strings.HasSuffix(lines[1], "FAILED, exit code 7") {
			t.Errorf("%s: status %d, %s%s", support, status, out, errOut)
		}
		var statuses []int
		for _, r := range s.requests {
			statuses = append(statuses, r.status)
		}
		want := map[string][]int{"supports": {200, 304, 200}, "ignores": {200, 200, 200}, "refuses": {422, 200, 200}, "waits": {200, 200}}
		if !slices.Equal(statuses, want[support.String()]) || !strings.HasPrefix(s.asked("job")[0], "fields=") {
			t.Errorf("%s: statuses %v, asked for %q", support, statuses, s.asked("job"))
		}
	}
}

// TestUnknownNames checks that all commands say which command lists the names.
func TestUnknownNames(t *testing.T) {
	s := randomSite(rand.New(rand.NewPCG(1, 2)))
	for args, want := range map[string]string{
		"show node zzz": "node zzz is unknown\nhint: schedctl nodes lists the nodes\n", "nodes zzz n1 yyy": "nodes zzz,yyy are unknown\nhint: schedctl nodes lists the nodes\n",
		"partitions zzz": "partition zzz is unknown\nhint: schedctl partitions lists the partitions\n", "job 99": "job 99 is unknown\nhint: schedctl jobs --all lists",
	} {
		if status, _, errOut := s.run(t, strings.Fields(args)...); status != statusUnknown || !strings.Contains(errOut, want) {
			t.Errorf("%s: status %d, %s", args, status, errOut)
		}
	}
}
