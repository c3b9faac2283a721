package cluster_test

import (
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/metric/cluster"
	"schedrestd/metric/exposition"
	"schedrestd/model"
)

func render(t *testing.T, c *cluster.Counts) string {
	t.Helper()
	var b strings.Builder
	w := exposition.NewWriter(&b)
	c.Write(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// parse returns the samples in a text.
func parse(t *testing.T, text string) map[string]float64 {
	t.Helper()
	samples := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if _, duplicate := samples[line[:cut]]; duplicate {
			t.Errorf("%s is written twice", line[:cut])
		}
		samples[line[:cut]] = v
	}
	return samples
}

// smallCluster returns a Counts with the records of a small cluster.
func smallCluster(t *testing.T, by cluster.By) *cluster.Counts {
	t.Helper()
	c := cluster.New(by)
	add := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	add(c.Partition(&model.Partition{Name: "debug", TotalCPUs: 24, TotalNodes: 3}))
	add(c.Partition(&model.Partition{Name: `odd"one`}))
	some := model.Some[uint64]
	for _, n := range []model.Node{
		{Name: "n1", State: model.NodeAllocated, CPUs: 8, EffectiveCPUs: 7, AllocCPUs: 2, Memory: 1000, SpecializedMemory: 100, AllocMemory: 300, FreeMem: some(500),
			TRES: "cpu=8,mem=1000M,gres/gpu=4", GRES: "gpu:a100:4(S:0,1),tmpdisk:no_consume:2G", GRESUsed: "gpu:a100:1(IDX:0,2),tmpdisk:0"},
		{Name: "n2", State: model.NodeAllocated | model.NodeDrain, CPUs: 8, AllocCPUs: 8, Memory: 1000, GRES: "gpu:4", GRESUsed: "gpu:h100:3(IDX:0-2)"},
		{Name: "n3", State: model.NodeDown | model.NodeNotResponding, CPUs: 8, EffectiveCPUs: 8, Memory: 1000, GRES: "gpu:a100:4", GRESUsed: "gpu:(null):0(IDX:N/A)"},
	} {
		add(c.Node(&n, []string{"debug", "gone"}))
	}
	node := func(bits byte) model.Bitmap { return model.Bitmap{Len: 3, Set: true, Bits: []byte{bits}} }
	for _, j := range []model.Job{
		{Partition: "debug", Account: "lab", State: model.JobRunning, TRESAlloc: "cpu=2,mem=1.50G,node=1,gres/gpu=1,gres/gpu:a100=1", NumCPUs: 9, NodeIndexes: node(0b001)},
		{Partition: "debug", Account: "lab", State: model.JobSuspended | model.JobSignaling, TRESAlloc: "mem=100M", NumCPUs: 3, NodeIndexes: node(0b011)},
		{Partition: "debug,odd\"one", State: model.JobPending, ArrayTasks: "0xf1", StateReason: 8, NumNodes: 7, MaxNodes: 9},
		{Partition: `odd"one`, Account: "lab", State: model.JobPending, ArrayTasks: "0x", StateReason: 4, NumNodes: 2, TRESAlloc: "cpu=99"},
		{Partition: "debug", Account: "lab", State: model.JobFailed | model.JobCompleting, NodeIndexes: node(0b100)},
		{Partition: "debug", Account: "lab", State: model.JobComplete},
		{Partition: "gone", Account: "lab", State: model.JobOutOfMemory},
	} {
		add(c.Job(&j, "alice"))
	}
	for _, s := range []model.Share{
		{Name: "root", SharesNormalized: model.FloatNotSet, Factor: 1, Level: model.FloatInfinite},
		{Name: "alice", Parent: "root", User: true, Factor: 0.5, SharesNormalized: 0.25, Usage: 60},
		{Name: "alice", Parent: "root", Partition: "debug", User: true, Factor: 0.75},
		{Name: "alice", Parent: "root", Partition: "debug", User: true, Factor: 1}, // a duplicate
	} {
		add(c.Share(&s))
	}
	c.Scheduler(&model.ControllerStats{Agents: 4, Schedule: model.SchedulerStats{CycleSum: 100, CycleCounter: 3, Exits: []uint32{1, 2, 3, 4, 5}},
		Backfill: model.BackfillStats{Active: true, DepthSum: 5, Exits: []uint32{9}}})
	return c
}

// TestPendingWithFlags checks that a waiting job is counted as pending, even if
// it is counted for other states too.
func TestPendingWithFlags(t *testing.T) {
	t.Parallel()
	c := cluster.New(cluster.By{})
	for _, flags := range []model.JobState{0, model.JobCompleting, model.JobConfiguring, model.JobRequeued} {
		if err := c.Job(&model.Job{State: model.JobPending | flags}, ""); err != nil {
			t.Fatal(err)
		}
	}
	got := parse(t, render(t, c))
	for name, want := range map[string]float64{"slurm_jobs_pending": 4, "slurm_jobs_completing": 1, "slurm_jobs_requeued": 1} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// TestCounts checks the numbers of a small cluster.
func TestCounts(t *testing.T) {
	t.Parallel()
	got := parse(t, render(t, smallCluster(t, cluster.By{User: true, Account: true, Node: true})))
	want := map[string]float64{
		"slurm_jobs":              11, // five tasks count individually
		"slurm_jobs_pending":      6,
		"slurm_jobs_hold":         5,
		"slurm_jobs_running":      1,
		"slurm_jobs_suspended":    1,
		"slurm_jobs_signaling":    1,
		"slurm_jobs_started":      5,
		"slurm_jobs_finished":     3,
		"slurm_jobs_completing":   1,
		"slurm_jobs_outofmemory":  1,
		"slurm_jobs_cpus_alloc":   5,
		"slurm_jobs_gpus_alloc":   1,
		"slurm_jobs_memory_alloc": 1636,
		"slurm_jobs_nodes_alloc":  2,

		"slurm_partitions":                                                2,
		`slurm_partition_jobs{partition="debug"}`:                         4,
		`slurm_partition_jobs_pending{partition="debug"}`:                 5,
		`slurm_partition_jobs_finished{partition="debug"}`:                2,
		`slurm_partition_jobs{partition="odd\"one"}`:                      1,
		`slurm_partition_jobs_max_job_nodes{partition="debug"}`:           9,
		`slurm_partition_jobs_max_job_nodes_nohold{partition="debug"}`:    0,
		`slurm_partition_jobs_wait_part_node_limit{partition="odd\"one"}`: 1,
		`slurm_partition_cpus{partition="debug"}`:                         24,
		`slurm_partition_gpus{partition="debug"}`:                         4,
		`slurm_partition_nodes{partition="debug"}`:                        3,
		`slurm_partition_nodes_no_resp{partition="debug"}`:                1,
		`slurm_partition_nodes_draining{partition="debug"}`:               1,
		`slurm_partition_nodes_cpus_idle{partition="debug"}`:              13,
		`slurm_partition_nodes_mem_avail{partition="debug"}`:              2900,
		`slurm_partition_nodes_mem_free{partition="debug"}`:               500,
		"slurm_nodes":                                                       3,
		"slurm_nodes_mixed":                                                 1,
		"slurm_nodes_alloc":                                                 1,
		"slurm_nodes_down":                                                  1,
		"slurm_nodes_drain":                                                 0,
		"slurm_nodes_draining":                                              1,
		"slurm_nodes_noresp":                                                1,
		`slurm_node_cpus{node="n1"}`:                                        8,
		`slurm_node_cpus_effective{node="n1"}`:                              7,
		`slurm_node_cpus_alloc{node="n1"}`:                                  2,
		`slurm_node_cpus_idle{node="n1"}`:                                   5,
		`slurm_node_gpus{node="n1"}`:                                        4,
		`slurm_node_gpus_alloc{node="n1"}`:                                  1,
		`slurm_node_gpus{node="n2"}`:                                        0, // without the trackable resource
		`slurm_node_gpus_alloc{node="n2"}`:                                  3,
		`slurm_node_gpus_alloc{node="n3"}`:                                  0,
		`slurm_node_memory_bytes{node="n1"}`:                                1000,
		`slurm_node_memory_effective_bytes{node="n1"}`:                      900,
		`slurm_node_memory_alloc_bytes{node="n1"}`:                          300,
		`slurm_node_memory_free_bytes{node="n1"}`:                           500,
		`slurm_user_jobs_nodes_alloc{username="alice"}`:                     2,
		`slurm_user_jobs_gpus_alloc{username="alice"}`:                      1,
		`slurm_account_jobs_gpus_alloc{account="lab"}`:                      1,
		`slurm_partition_jobs_gpus_alloc{partition="debug"}`:                1,
		`slurm_user_jobs{username="alice"}`:                                 7,
		`slurm_user_jobs_pending{username="alice"}`:                         6,
		`slurm_account_jobs{account="lab"}`:                                 6,
		`slurm_account_jobs_pending{account=""}`:                            5,
		`schedrestd_cluster_cpus{state="allocated"}`:                        10,
		`schedrestd_cluster_cpus{state="idle"}`:                             5,
		`schedrestd_cluster_cpus{state="down"}`:                             8,
		`schedrestd_cluster_memory_bytes{state="allocated"}`:                300 << 20,
		`schedrestd_cluster_memory_bytes{state="idle"}`:                     600 << 20,
		`schedrestd_cluster_memory_bytes{state="down"}`:                     2000 << 20,
		`schedrestd_cluster_gres{gres="gpu",type="a100",state="allocated"}`: 1,
		`schedrestd_cluster_gres{gres="gpu",type="a100",state="idle"}`:      3,
		`schedrestd_cluster_gres{gres="gpu",type="a100",state="down"}`:      4,
		`schedrestd_cluster_gres{gres="gpu",type="",state="allocated"}`:     3,
		`schedrestd_cluster_gres{gres="gpu",type="",state="down"}`:          1,
		`schedrestd_cluster_gres{gres="tmpdisk",type="",state="idle"}`:      2 << 30,
		"slurm_agent_cnt":                                                   4,
		"slurm_sched_mean_cycle":                                            33,
		"slurm_bf_depth_mean":                                               0,
		"slurm_bf_active":                                                   1,
		"slurm_sched_exit_rpc_cnt":                                          5,
		"slurm_sched_exit_timeout":                                          0,
		"slurm_bf_exit_end":                                                 9,
		`schedrestd_cluster_account_fairshare_factor{account="root"}`:       1,
		`schedrestd_cluster_account_fairshare_level{account="root"}`:        math.Inf(1),
		`schedrestd_cluster_user_fairshare_factor{account="root",username="alice",partition=""}`:             0.5,
		`schedrestd_cluster_user_fairshare_factor{account="root",username="alice",partition="debug"}`:        0.75,
		`schedrestd_cluster_user_fairshare_usage_tres_seconds{account="root",username="alice",partition=""}`: 60,
	}
	for name, n := range want {
		if v, ok := got[name]; !ok || v != n {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, n)
		}
	}
	if _, ok := got[`schedrestd_cluster_account_fairshare_shares{account="root"}`]; ok {
		t.Error("a value that is not set was written")
	}
}

// TestNoNames checks that the metrics name users only if By.User is set,
// accounts only if By.Account is set, and nodes only if By.Node is set.
func TestNoNames(t *testing.T) {
	t.Parallel()
	for by, labels := range map[cluster.By][3]bool{{}: {}, {User: true}: {true, false, false}, {Account: true}: {false, true, false}, {Node: true}: {false, false, true}} {
		s := render(t, smallCluster(t, by))
		if got := [3]bool{strings.Contains(s, "alice"), strings.Contains(s, "slurm_account_"), strings.Contains(s, `"n1"`)}; got != labels {
			t.Errorf("%+v: shows users, accounts, nodes: %v", by, got)
		}
	}
}

// TestPromtool checks that promtool reports no problem with any metric.
func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool: apt-get install prometheus")
	}
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(render(t, smallCluster(t, cluster.By{User: true, Account: true, Node: true})))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestMostValues checks the limit on the number of values of a label.
func TestMostValues(t *testing.T) {
	t.Parallel()
	c := cluster.New(cluster.By{User: true})
	var err error
	for i := range 100_000 {
		if err = c.Job(&model.Job{}, fmt.Sprint("user", i)); err != nil {
			break
		}
	}
	if errs.KindOf(err) != errs.Invalid {
		t.Errorf("100000 users: %v", err)
	}
	nodes := cluster.New(cluster.By{Node: true})
	for i := range 100_000 {
		if err = nodes.Node(&model.Node{Name: fmt.Sprint("n", i)}, nil); err != nil {
			break
		}
	}
	if errs.KindOf(err) != errs.Invalid {
		t.Errorf("100000 nodes: %v", err)
	}
	for i := range 100_000 {
		if err = c.Node(&model.Node{GRES: fmt.Sprint("g", i, ":1")}, nil); err != nil {
			break
		}
	}
	if errs.KindOf(err) != errs.BadAnswer {
		t.Errorf("100000 kinds of GRES: %v", err)
	}
}

// TestSameLabels checks that users are counted together if their names become
// the same label value. Prometheus would refuse a duplicate series.
func TestSameLabels(t *testing.T) {
	t.Parallel()
	c := cluster.New(cluster.By{User: true})
	for _, user := range []string{"a\xff", "a\xfe", "a\x00"} {
		if err := c.Job(&model.Job{}, user); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(3.0, parse(t, render(t, c))["slurm_user_jobs{username=\"a\uFFFD\"}"]); d != "" {
		t.Error(d)
	}
}

// FuzzNode checks that a node can be counted, whatever strings it contains.
func FuzzNode(f *testing.F) {
	f.Add("gpu:a100:4(S:0-1),tmpdisk:no_consume:100G", "gpu:(null):0(IDX:N/A)", "cpu=4,mem=1.50G,gres/gpu=2")
	f.Add("a:1E", "))((,::", "mem=99999999999999P,gres/gpu=1e9")
	f.Fuzz(func(t *testing.T, gres, used, tres string) {
		c := cluster.New(cluster.By{Node: true})
		if err := c.Node(&model.Node{GRES: gres, GRESUsed: used, TRES: tres}, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Job(&model.Job{State: model.JobRunning, TRESAlloc: tres, ArrayTasks: gres}, ""); err != nil {
			t.Fatal(err)
		}
		for name, v := range parse(t, render(t, c)) {
			if v < 0 || math.IsNaN(v) {
				t.Errorf("%s is %v", name, v)
			}
		}
	})
}
