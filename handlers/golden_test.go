package handlers

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/errs/errcode"
	"schedrestd/internal/feature"
	"schedrestd/model"
)

var update = flag.Bool("update", false, "write the golden files")

// demo returns a small cluster. It contains at least one example of each form
// in which objects are rendered.
func demo() *fake {
	return &fake{
		release:    "24.11.5",
		lastUpdate: 1_795_000_500, backfill: 1_795_000_400,
		pings: []model.Ping{
			{Hostname: "ctl1", Responding: true, Latency: 523, Mode: "primary", Primary: true},
			{Hostname: "ctl2", Mode: "backup1"},
		},
		partitions: []model.Partition{
			{Name: "debug", Nodes: "n[1-2]", Flags: 1, PreemptMode: 0xfffe, CPUBind: 0x80001, StateUp: 3, MaxShare: 1, PriorityJobFactor: 1, PriorityTier: 1, TotalNodes: 2, TotalCPUs: 12, TRES: "cpu=12,node=2"},
			{Name: "long", Nodes: "n2", StateUp: 2, MaxShare: shareForced | 4, DefMemPerCPU: 512 | model.MemPerCPU, MaxMemPerCPU: 4096, MaxTime: model.Infinite[uint32](), DefaultTime: model.Some[uint32](60),
				OverTimeLimit: model.Some[uint16](5), CRType: 0x14, GraceTime: 30, DenyQOS: "scavenger", SuspendTime: model.Some[uint32](600), Topology: "tree", Flags: 0x1002, PreemptMode: 0x2002},
		},
		nodes: []model.Node{
			{Name: "n1", Hostname: "h\xe4mster", Address: "10.0.0.1", Port: 6818, State: model.NodeIdle | model.NodeDrain, NextState: model.NodeStateNone,
				CPUs: 8, EffectiveCPUs: 8, Memory: 1 << 60, FreeMem: model.Some[uint64](9_007_199_254_740_993), Reason: "fan \"2\"\n", ReasonUID: 20001, ReasonTime: 1_795_000_000,
				Owner: model.Some[uint32](20002), Features: "fast,big", BootTime: 1_794_000_000, DaemonStartTime: 1_794_000_100, Version: "24.11.5", CertFlags: 1},
			{Name: "n2", State: model.NodeAllocated, NextState: model.NodeIdle, CPUs: 4, EffectiveCPUs: 4, AllocCPUs: 1, ReasonUID: 0xfffffffe, GPUSpec: "0-3", Topology: "s1:b1", SuspendTime: model.Some[uint32](300)},
		},
		jobs: []model.Job{{
			StepID: model.StepID{JobID: 12, SLUID: 0x7fff_ffff_0000_0401}, SubmitLine: "sbatch job.sh", ContainerType: "crun", Detailed: true, MemUpdateMargin: model.Some[uint16](5), Name: "häld 中文\xff", UserID: 20001, GroupID: 20002, BatchFlag: 1, State: model.JobFailed | model.JobCompleting, StateReason: 24, ExitCode: 3 << 8,
			DerivedExitCode: 9, ArrayJobID: 12, ArrayTaskID: model.Some[uint32](3), ArrayTasks: "0x492", ArrayMaxTasks: 2, TimeLimit: model.Infinite[uint32](), Nice: model.NiceOffset - 5,
			MinMemory: 512 | model.MemPerCPU, WorkDir: "/home/alice", StdOut: "out-%A_%a-%u-%%-%5j-%q", Shared: model.Some[uint16](0), Priority: 0, Partition: "debug,long", PriorityArray: []uint32{5, 7},
			Flags: 1<<14 | 1<<41 | 1<<24 | 1<<48, MailType: 1<<1 | 1<<4, Requeue: 1, BillableTRES: 2, NumCPUs: 2, NumNodes: 2, Nodes: "n[1-2]",
			JobSizes: model.Bitmap{Len: 8, Set: true, Bits: []byte{0b0001_0110}},
			Resources: model.JobResources{Hosts: model.Some[uint32](2), NCPUs: 3, NodeReq: 1, Nodes: "n[1-2]", CRType: 0x14, CPUs: []uint16{2, 1}, CPUsUsed: []uint16{1, 0},
				MemoryAllocated: []uint64{1024, 512}, MemoryUsed: []uint64{0, 0}, SocketsPerNode: []uint16{1}, CoresPerSocket: []uint16{2}, SockCoreRepCount: []uint32{2}, ThreadsPerCore: 1,
				CoreBitmap: model.Bitmap{Len: 4, Set: true, Bits: []byte{0b0111}}, CoreBitmapUsed: model.Bitmap{Len: 4, Set: true, Bits: []byte{0b0001}}},
		}},
		reservations: []model.Reservation{
			{Name: "maint", Flags: 1<<0 | 1<<6 | 1<<15 | 1<<39, Nodes: "n[1-2]", NodeCount: 2, Cores: 12, StartTime: 1_795_001_000, EndTime: 1_795_002_000, Users: "alice,-bob", TRES: "cpu=12", PurgeCompleted: model.Some[uint32](300)},
			{Name: "weekly", Flags: 1<<2 | 1<<4 | 1<<21 | 1<<23 | 1<<35, Accounts: "physics", Groups: "wheel", MaxStartDelay: 60, EndTime: 0xfffffffe,
				CoreSpecializations: []model.CoreSpecialization{{Node: "n1", Cores: "0-1,3"}}},
			{Name: "every other flag", Flags: 0x5555_5555_5555_5555},
			{Name: "two of four flags", Flags: 0x3333_3333_3333_3333},
		},
		licenses: []model.License{
			{Name: "matlab", Nodes: "n1", Total: 10, InUse: 3, LastDeficit: 2, Reserved: 1},
			{Name: "ansys@server", Total: 2, InUse: 4_294_967_295, LastDeficit: 3, Remote: true, LastConsumed: 5, LastUpdate: 1_795_000_100},
		},
		counts: model.ControllerStats{
			RequestTime: 1_795_000_200, StatsStart: 1_795_000_000, ServerThreads: 3, JobsSubmitted: 9, JobsStarted: 8, JobsCompleted: 7, JobsCanceled: 6, JobsFailed: 5, JobsPending: 4, JobsRunning: 2,
			Schedule:    model.SchedulerStats{CycleMax: 90, CycleLast: 50, CycleSum: 1 << 33, CycleCounter: 10, CycleDepth: 25, Exits: []uint32{1, 2, 3, 4, 5, 6, 7}, QueueLen: 4},
			Backfill:    model.BackfillStats{Jobs: 21, LastJobs: 22, CycleCounter: 4, CycleSum: 41, LastDepth: 23, DepthSum: 9, DepthTrySum: 8, QueueLenSum: 20, TableSizeSum: 12, Active: true, Exits: []uint32{11, 12, 13, 14}},
			RPCTypes:    []model.RPCTypeStats{{Type: 1008, Count: 2, Time: 81, Queued: 1, Dropped: 2, CycleLast: 3, CycleMax: 4}, {Type: 9999, Count: 1}},
			RPCUsers:    []model.RPCUserStats{{UserID: 0, Count: 3, Time: 10}, {UserID: 20001, Count: 1}},
			PendingRPCs: []model.PendingRPCs{{Type: 1001, Count: 2}}, PendingHosts: []model.PendingHosts{{Type: 6009, Hosts: "n[1-2],m"}, {Type: 70000}},
		},
		changes: changes{layout: []model.ResourceLayout{{Node: "n1", Memory: 1024, SocketsPerNode: 1, CoresPerSocket: 8, Channel: model.Some[uint32](7), Cores: "0x00F0", GRES: []model.GRESLayout{
			{Name: "gpu", Type: "a100", Count: 2, Indexed: true, Index: model.Bitmap{Len: 8, Set: true, Bits: []byte{0b0000_0110}}}, {Name: "shard", Count: 5}}}}},
		taskResults: []model.TaskResult{{Tasks: "12_[1-2]", Code: 2021, Reason: "Job/step already completing or completed", Message: "too late"}, {Tasks: "12_3", Reason: "No error"}},
		killResults: []model.KillResult{
			{Code: 2021, Reason: "the job has already ended", Message: "too late", ID: model.SelectedStep{Step: model.StepID{JobID: 12}, ArrayTaskID: model.Some[uint32](3)}, RealJobID: model.Some[uint32](15), Sibling: "west"},
			{Reason: "No error", ID: model.SelectedStep{Step: model.StepID{JobID: 12}, HetOffset: model.Some[uint32](1)}},
			{ID: model.SelectedStep{Step: model.StepID{JobID: 12, Step: model.Some[uint32](4)}, ArrayTasks: model.Bitmap{Len: 8, Set: true, Bits: []byte{0b1110_0010}}}},
		},
		tresNames:   []string{"cpu", "mem"},
		totalShares: 7,
		shares: []model.Share{
			{AssocID: 1, Cluster: "demo", Name: "root", SharesNormalized: model.FloatNotSet, Level: model.FloatNotSet, UsageNormalized: 0.25, EffectiveUsage: 1, TRESUsage: []float64{1.5, 2, 3},
				TRESRunSeconds: []model.Opt[uint64]{model.Some[uint64](60)}, TRESGroupMinutes: []model.Opt[uint64]{model.Infinite[uint64](), {}}},
			{AssocID: 2, Cluster: "demo", Name: "alice", Parent: "root", Partition: "long", User: true, Shares: model.Some[uint32](3), SharesNormalized: 1e-10, Usage: 12, Factor: 0.5, Level: math.Inf(1), UsageNormalized: math.NaN()},
		},
		priorities: []model.JobPriority{
			{StepID: model.StepID{JobID: 12}, Account: "lab", Partition: "long", QOS: "fast", UserID: 1001, Age: 0.5, Association: 1, FairShare: 1234.75, JobSize: 2, PartitionPart: 3, QOSPart: 4,
				Site: model.NiceOffset + 5, Nice: model.NiceOffset - 6, TRES: []float64{0, 7.25}, TRESNames: []string{"cpu", "mem"}, TRESWeights: []float64{1, 2}},
			{StepID: model.StepID{JobID: 13}, Account: "root", Partition: "short", UserID: 1002, Direct: 99},
		},
		states: []model.JobStateEntry{
			{JobID: 12, State: model.JobFailed | model.JobCompleting},
			{JobID: 20, ArrayJobID: 20, ArrayTasks: model.Bitmap{Len: 8, Set: true, Bits: []byte{0b1000_0010}}},
			{JobID: 21, ArrayJobID: 20, ArrayTaskID: model.Some[uint32](3), State: model.JobRunning},
			{JobID: 31, HetJobID: 30, State: model.JobRunning},
		},
		recorded: demoRecorded(),
		stats: model.AccountingStats{
			TimeStart: 1_794_000_000,
			Rollup:    model.Rollup{Periods: []model.RollupPeriod{{Count: 3, LastRun: 1_795_000_000, TimeLast: 10, TimeMax: 20, TimeTotal: 45}, {}, {}}},
			RPCs:      []model.CallCount{{Count: 2, ID: 1489, Time: 900}, {Count: 1, ID: 9999, Time: 5}},
			Users:     []model.CallCount{{Count: 3, ID: 0, Time: 905}},
		},
	}
}

const shareForced = 0x8000

var requestID = regexp.MustCompile(`[A-Z2-7]{26}`)

const submission = `{"script": "#!/bin/sh\nhostname\n", "job": {"name": "t", "environment": {"PATH": "/bin"}, "colour": "red", "current_working_directory": "/tmp"}}`

// A golden is a request whose answers, one for each version, are stored in a
// file. If an endpoint has no golden, the tests send it a request without
// parameters or a body.
type golden struct{ name, method, url, body string }

var goldens = []golden{
	{"ping", "GET", "/sched/VERSION/ping", ""},
	{"nodes", "GET", "/sched/VERSION/nodes", ""},
	{"node", "GET", "/slurm/VERSION/node/n2", ""},
	{"partitions", "GET", "/sched/VERSION/partitions", ""},
	{"partition", "GET", "/slurm/VERSION/partition/long", ""},
	{"jobs", "GET", "/slurm/VERSION/jobs", ""},
	{"job-states", "GET", "/sched/VERSION/jobs/state", ""},
	{"job-priorities", "GET", "/sched/VERSION/jobs/priority", ""},
	{"job", "GET", "/sched/VERSION/job/12", ""},
	{"reservations", "GET", "/slurm/VERSION/reservations", ""},
	{"reservation", "GET", "/sched/VERSION/reservation/weekly", ""},
	{"licenses", "GET", "/sched/VERSION/licenses", ""},
	{"shares", "GET", "/sched/VERSION/shares", ""},
	{"diag", "GET", "/sched/VERSION/diag", ""},
	{"submit", "POST", "/sched/VERSION/job/submit", submission},
	{"update-job", "POST", "/slurm/VERSION/job/12", `{"comment": "c", "hold": false, "colour": "red"}`},
	{"cancel-jobs", "DELETE", "/slurm/VERSION/jobs", `{"jobs": ["12", "13"], "signal": "USR1"}`},
	{"requeue", "GET", "/sched/VERSION/job/12/requeue?Hold=true", ""},
	{"requeue-jobs", "POST", "/slurm/VERSION/jobs/requeue", `{"jobs": ["12", "13"], "flags": ["Incomplete"]}`},
	{"update-node", "POST", "/slurm/VERSION/node/n2", `{"state": ["DRAIN"], "reason": "fan"}`},
	{"update-nodes", "POST", "/slurm/VERSION/nodes", `{"name": ["n1", "n2"], "weight": 5}`},
	{"new-node", "POST", "/sched/VERSION/new/node", `{"node_conf": "NodeName=d1 State=CLOUD"}`},
	{"change-reservation", "POST", "/slurm/VERSION/reservation", `{"name": "weekly", "users": ["alice"], "flags": ["NO_DAILY"], "duration": 60, "tres": [{"type": "cpu", "count": 4}], "colour": "red"}`},
	{"change-reservations", "POST", "/sched/VERSION/reservations", `{"reservations": [{"name": "new", "start_time": 1795000000, "duration": 60, "users": "alice", "partition": "long"}, {"name": "newer"}]}`},
	{"change-partitions", "POST", "/slurm/VERSION/partitions", `{"partitions": [{"name": "debug", "partition": {"state": ["DOWN"]}, "nodes": {"total": 3}}]}`},
	{"hostnames", "POST", "/util/VERSION/hostnames", `{"hostlist": "n[01-03],login"}`},
	{"hostlist", "POST", "/util/VERSION/hostlist", `{"hostnames": ["n01", "n02", "n[03-04]", "login"], "colour": "red"}`},
	{"submit-several", "POST", "/slurm/VERSION/job/submit", `{"script": "#!/bin/sh\nhostname\n", "jobs": [{"environment": {"PATH": "/bin"}, "current_working_directory": "/tmp"}, {"tasks": 4, "colour": "red"}]}`},
	{"allocate", "POST", "/slurm/VERSION/job/allocate", `{"job": {"tasks": 2, "colour": "red"}}`},
	{"cancel", "DELETE", "/sched/VERSION/job/12", ""},
	{"accounting-ping", "GET", "/scheddb/VERSION/ping", ""},
	{"accounting-diag", "GET", "/scheddb/VERSION/diag", ""},
	{"tres", "GET", "/scheddb/VERSION/tres", ""},
	{"clusters", "GET", "/slurmdb/VERSION/clusters", ""},
	{"cluster", "GET", "/scheddb/VERSION/cluster/demo", ""},
	{"qos-list", "GET", "/scheddb/VERSION/qos", ""},
	{"qos", "GET", "/slurmdb/VERSION/qos/fast", ""},
	{"accounts", "GET", "/slurmdb/VERSION/accounts", ""},
	{"account", "GET", "/scheddb/VERSION/account/lab?with_assocs=true&with_coords=true", ""},
	{"users", "GET", "/scheddb/VERSION/users?with_assocs=true&with_wckeys=true", ""},
	{"user", "GET", "/slurmdb/VERSION/user/bob", ""},
	{"associations", "GET", "/scheddb/VERSION/associations", ""},
	{"association", "GET", "/slurmdb/VERSION/association?user=alice", ""},
	{"recorded-jobs", "GET", "/slurmdb/VERSION/jobs", ""},
	{"recorded-job", "GET", "/scheddb/VERSION/job/13", ""},
	{"wckeys", "GET", "/scheddb/VERSION/wckeys?with_usage=true", ""},
	{"usage", "GET", "/scheddb/VERSION/usage?start=1699999200&end=1700006400", ""},
	{"wckey", "GET", "/slurmdb/VERSION/wckey/k", ""},
	{"instances", "GET", "/scheddb/VERSION/instances?cluster=demo", ""},
	{"post-accounts", "POST", "/slurmdb/VERSION/accounts", `{"accounts": [{"name": "new", "description": "d", "organization": "o", "colour": 1}, {"name": "lab", "description": "changed", "organization": "", "associations": [{"user": "alice"}]}], "meta": {"client": {"user": "root"}}}`},
	{"post-users", "POST", "/scheddb/VERSION/users", `{"users": [{"name": "carol", "default": {"account": "lab"}}, {"name": "bob", "administrator_level": ["Operator"]}]}`},
	{"post-associations", "POST", "/slurmdb/VERSION/associations", `{"associations": [{"account": "lab", "cluster": "demo", "user": "bob", "default": {"qos": "fast"}, "max": {"tres": {"total": [{"type": "cpu", "count": 8}]}}}]}`},
	{"post-qos", "POST", "/scheddb/VERSION/qos", `{"qos": [{"name": "fast", "priority": 5, "usage_factor": 1.5}, {"name": "slow", "flags": ["NO_RESERVE"]}]}`},
	{"post-qos-unknown", "POST", "/scheddb/VERSION/qos", `{"qos": [{"name": "slow", "preempt": {"list": ["nosuch"]}}]}`},
	{"post-clusters", "POST", "/slurmdb/VERSION/clusters", `{"clusters": [{"name": "new"}, {"name": "demo"}]}`},
	{"post-wckeys", "POST", "/scheddb/VERSION/wckeys", `{"wckeys": [{"name": "w", "cluster": "demo", "user": "bob"}]}`},
	{"accounts-association", "POST", "/scheddb/VERSION/accounts_association", `{"association_condition": {"accounts": ["new"], "clusters": ["demo"], "association": {"grpjobs": 5, "parent": "lab"}}, "account": {"description": "d"}}`},
	{"users-association", "POST", "/slurmdb/VERSION/users_association", `{"association_condition": {"users": ["carol"], "accounts": ["lab"]}, "user": {"adminlevel": ["None"]}}`},
	{"delete-association", "DELETE", "/slurmdb/VERSION/association?user=carol&account=lab&cluster=demo", ""},
	{"delete-associations", "DELETE", "/scheddb/VERSION/associations?account=lab", ""},
	{"delete-everything", "DELETE", "/slurmdb/VERSION/associations", ""},
	{"delete-qos", "DELETE", "/scheddb/VERSION/qos/fast", ""},
	{"delete-wckey", "DELETE", "/slurmdb/VERSION/wckey/3", ""},
	{"config", "GET", "/slurmdb/VERSION/config", ""},
	{"load-config", "POST", "/scheddb/VERSION/config", `{"clusters": [{"name": "demo"}], "tres": [{"type": "cpu"}], "accounts": [{"name": "new", "description": "d", "organization": "o", "coordinators": [{"name": "bob"}]}], "qos": [{"name": "slow"}]}`},
	{"modify-job", "POST", "/slurmdb/VERSION/job/12", `{"comment": {"job": "fine"}, "derived_exit_code": {"return_code": 3}, "tres": {"allocated": [{"type": "cpu", "count": 2}]}}`},
	{"modify-jobs", "POST", "/scheddb/VERSION/jobs", `{"job_id_list": ["12", "13"], "job_rec": {"extra": "x"}}`},
	{"no-such-account", "GET", "/scheddb/VERSION/account/nobodys", ""},
	{"no-such-recorded-job", "GET", "/scheddb/VERSION/job/99", ""},
	{"new-token", "POST", "/sched/VERSION/tokens", `{"scopes": ["compute.read"], "lifetime": 86400, "label": "ci"}`},
	{"no-such-node", "GET", "/sched/VERSION/node/n9", ""},
	{"no-such-partition", "GET", "/sched/VERSION/partition/n9", ""},
	{"no-such-reservation", "GET", "/sched/VERSION/reservation/r9", ""},
	{"slurm-no-such-node", "GET", "/slurm/VERSION/node/n9", ""},
	{"slurm-no-such-recorded-job", "GET", "/slurmdb/VERSION/job/99", ""},
	{"not-understood", "POST", "/sched/VERSION/job/submit", `{"job": {"script": "x", "tasks": "many", "begin_time": {"number": -2}}}`},
	{"bad-parameters", "GET", "/sched/VERSION/nodes?flags=NOPE&update_time=yesterday&colour=red", ""},
}

// placeholders replaces the placeholders in the paths of goldens.
var placeholders = strings.NewReplacer("{job_id}", "12", "{node_name}", "n2", "{partition_name}", "long", "{reservation_name}", "weekly",
	"{account_name}", "lab", "{name}", "bob", "{qos}", "fast", "{cluster_name}", "demo", "{id}", "k", "{token_id}", demoTokens[0].ID)

// allGoldens returns the goldens, plus one for each endpoint that none of them
// requests.
func allGoldens(t *testing.T) []golden {
	list := slices.Clone(goldens)
	requested := requestedEndpoints(t, goldens)
	for _, e := range api.Endpoints {
		if !requested[e] {
			spelling := schema.Slurm
			if e.SchedOnly {
				spelling = schema.Sched
			}
			url := "/" + e.Segment(spelling) + "/VERSION/" + placeholders.Replace(strings.TrimSuffix(e.Path, "/"))
			list = append(list, golden{e.Segment(schema.Sched) + "-" + strings.ReplaceAll(e.ID, "_", "-"), e.Method, url, ""})
		}
	}
	return list
}

// requestedEndpoints returns the endpoints to which the given goldens send
// requests.
func requestedEndpoints(t *testing.T, list []golden) map[*api.Endpoint]bool {
	t.Helper()
	cfg := config(demo())
	cfg.Parsers, cfg.Content = feature.AllParsers(), feature.AllContent
	s := New(cfg)
	requested := map[*api.Endpoint]bool{}
	for _, g := range list {
		for _, v := range api.Versions {
			r, err := http.NewRequest(g.method, g.path(v), nil)
			if err != nil {
				t.Fatal(err)
			}
			if endpoint, _, _ := s.Find(r); endpoint != nil {
				requested[endpoint] = true
			}
		}
	}
	return requested
}

func (g golden) path(v schema.Version) string {
	return strings.Replace(g.url, "VERSION", v.String(), 1)
}

// TestGolden compares the answers to each golden, in all versions, with a file
// in testdata/golden. After an intended change, run the test with -update.
func TestGolden(t *testing.T) {
	for _, tt := range allGoldens(t) {
		t.Run(tt.name, func(t *testing.T) {
			var got []goldenAnswer
			for _, v := range slices.Backward(api.Versions) {
				w := serve(t, config(demo()), request(tt.method, tt.path(v), tt.body))
				if requestID.FindString(w.Header().Get("X-Request-Id")) == "" {
					t.Errorf("X-Request-Id is %q", w.Header().Get("X-Request-Id"))
				}
				var body bytes.Buffer
				if err := json.Indent(&body, w.Body.Bytes(), "", " "); err != nil {
					t.Fatalf("%v in %s", err, w.Body)
				}
				got = append(got, goldenAnswer{v.String(), w.Code, body.String()})
			}
			file := filepath.Join("testdata", "golden", tt.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(formatGolden(tt, got)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := parseGolden(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if d := cmp.Diff(want, got, cmp.AllowUnexported(goldenAnswer{})); d != "" {
				t.Errorf("golden (-), now (+):\n%s", d)
			} else if string(text) != formatGolden(tt, got) {
				t.Errorf("%s has the same answers in another form: run make golden", file)
			}
		})
	}
}

// TestNoOtherGoldens checks that each file in testdata/golden belongs to a
// golden.
func TestNoOtherGoldens(t *testing.T) {
	known := map[string]bool{}
	for _, g := range allGoldens(t) {
		known[g.name+".txt"] = true
	}
	files, err := os.ReadDir(filepath.Join("testdata", "golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] && filepath.Ext(f.Name()) != ".yaml" {
			t.Errorf("testdata/golden/%s belongs to no golden: delete it", f.Name())
		}
	}
}

// TestStatus checks the status and the code for every kind of error. It also
// checks that the client gets neither the cause of an error nor the message of
// an internal error or a refused credential.
func TestStatus(t *testing.T) {
	tests := []struct {
		name      string
		err       error
		status    int
		code      string
		retryable bool
		header    [2]string
	}{
		{"malformed", errs.New(errs.Malformed, "m"), 400, "malformed", false, [2]string{}},
		{"too large", errs.New(errs.TooLarge, "m"), 413, "too_large", false, [2]string{}},
		{"not acceptable", errs.New(errs.NotAcceptable, "m"), 406, "not_acceptable", false, [2]string{}},
		{"URI too long", errs.New(errs.URITooLong, "m"), 414, "uri_too_long", false, [2]string{}},
		{"header too large", errs.New(errs.HeaderTooLarge, "m"), 431, "header_too_large", false, [2]string{}},
		{"invalid", errs.New(errs.Invalid, "m"), 422, "invalid", false, [2]string{}},
		{"denied", errs.New(errs.Denied, "m"), 403, "denied", false, [2]string{}},
		{"not found", errs.New(errs.NotFound, "m"), 404, "not_found", false, [2]string{}},
		{"conflict", errs.New(errs.Conflict, "m"), 409, "conflict", false, [2]string{}},
		{"too many", errs.New(errs.TooMany, "m"), 429, "too_many", true, [2]string{"Retry-After", "5"}},
		{"unavailable", errs.New(errs.Unavailable, "m"), 503, "unavailable", true, [2]string{"Retry-After", "5"}},
		{"timeout", errs.New(errs.Timeout, "m"), 504, "timeout", true, [2]string{}},
		{"bad answer", errs.New(errs.BadAnswer, "m"), 502, "bad_answer", false, [2]string{}},
		{"unsupported", errs.New(errs.Unsupported, "m"), 501, "unsupported", false, [2]string{}},
		{"method not allowed", errs.New(errs.MethodNotAllowed, "m"), 405, "method_not_allowed", false, [2]string{}},
		{"unsupported media", errs.New(errs.UnsupportedMedia, "m"), 415, "unsupported_media_type", false, [2]string{}},
		{"request timeout", errs.New(errs.RequestTimeout, "m"), 408, "request_timeout", true, [2]string{}},
		{"unauthenticated", &errs.Error{Kind: errs.Unauthenticated, Message: "expired yesterday"}, 401, "unauthenticated", false, [2]string{"WWW-Authenticate", "Bearer"}},
		{"wrapped", errs.Wrap(os.ErrPermission, errs.Unavailable, "m"), 503, "unavailable", true, [2]string{}},
		{"internal", errs.New(errs.Internal, "secret"), 500, "internal", false, [2]string{}},
		{"unclassified", os.ErrPermission, 500, "internal", false, [2]string{}},
		{"outcome unknown", &errs.Error{Kind: errs.BadAnswer, Message: "m", Code: errs.OutcomeUnknown}, 502, "outcome_unknown", false, [2]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.submitErr = tt.err
			w := serve(t, config(f), request(http.MethodPost, "/sched/v0.0.42/job/submit", `{"job":{"script":"x"}}`))
			if w.Code != tt.status {
				t.Errorf("status %d, want %d", w.Code, tt.status)
			}
			if want := tt.header; want[0] != "" && w.Header().Get(want[0]) != want[1] {
				t.Errorf("%s: %q, want %q", want[0], w.Header().Get(want[0]), want[1])
			}
			body := envelope(t, w.Body.Bytes())
			if len(body.Errors) != 1 || body.Errors[0].Code != tt.code || body.Errors[0].Retryable != tt.retryable ||
				body.Errors[0].Description == "" || body.Errors[0].Error != http.StatusText(tt.status) {
				t.Errorf("errors: %+v", body.Errors)
			}
			for _, inner := range []string{"permission", "expired", "secret"} {
				if strings.Contains(w.Body.String(), inner) {
					t.Errorf("the client sees %q", inner)
				}
			}
		})
	}
}

// TestEveryKindHasAStatus checks that no kind except Internal has status 500.
// It fails if a new kind was not added to the function status.
func TestEveryKindHasAStatus(t *testing.T) {
	seen := map[string]bool{}
	for k := errs.Internal; !seen[errcode.Of(k)]; k++ { // after the last kind, the code is "internal" again
		seen[errcode.Of(k)] = true
		if code := rest.Status(errs.New(k, "m")); code == http.StatusInternalServerError != (k == errs.Internal) {
			t.Errorf("%v: status %d", k, code)
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d kinds", len(seen))
	}
}

// TestUnchanged checks that a request for an unchanged list gets status 304
// without a body, and not an error.
func TestUnchanged(t *testing.T) {
	f := demo()
	f.midwayErr = &errs.Error{Kind: errs.Unchanged, Message: "nothing has changed since that time", Number: 1900}
	f.jobs, f.nodes = nil, nil
	f.partitions, f.reservations, f.licenses = nil, nil, nil
	for _, path := range []string{"/sched/v0.0.42/jobs", "/sched/v0.0.42/nodes", "/sched/v0.0.42/partitions", "/sched/v0.0.42/reservations", "/sched/v0.0.42/licenses"} {
		if w := serve(t, config(f), request(http.MethodGet, path, "")); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
}

// enveloped has the fields of an answer that tests read.
type enveloped struct {
	Errors []struct {
		Description, Error, Source, Code string
		Number                           int `json:"error_number"`
		Retryable                        bool
	}
	Warnings []struct{ Description, Source string }
	Meta     map[string]any
	JobID    int `json:"job_id"`
}

func envelope(t *testing.T, b []byte) (body enveloped) {
	t.Helper()
	if err := json.Unmarshal(b, &body); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	if body.Meta == nil || body.Errors == nil || body.Warnings == nil {
		t.Fatalf("no envelope: %s", b)
	}
	return body
}
