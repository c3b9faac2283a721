package cluster_test

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/metric/cluster"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// capture is an answer that was captured from a real daemon. It contains the
// answer's frame in hexadecimal digits, and the values that an independent
// decoder found in that frame.
type capture struct {
	Frame   string `json:"response_frame"`
	Decoded struct {
		Items []struct {
			Jobs, Nodes, Partitions record
		}
	}
}

// record holds the fields of a job or node that the test counts or adds up.
type record struct {
	Name      string `json:"name"`
	JobState  uint32 `json:"job_state"`
	NodeState uint32 `json:"node_state"`
	AllocCPUs uint64 `json:"alloc_cpus"`
	CPUs      uint64 `json:"cpus_efctv"`
	Memory    uint64 `json:"real_memory"`
	Partition string `json:"partition"`
	Account   string `json:"account"`
}

// TestCaptured counts the records in answers that were captured from the
// controllers of Slurm 22.05, 24.11 and 26.05, in every protocol version. The
// metrics must agree with the records that an independent decoder found.
func TestCaptured(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../rpc/message/testdata/frames/*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	captures := 0
	for _, file := range files {
		if strings.Contains(file, "-dbd-") {
			continue
		}
		captures++
		t.Run(filepath.Base(file), func(t *testing.T) {
			answers := readCaptures(t, file)
			count := cluster.New(cluster.By{User: true, Account: true, Node: true})
			partitions, nodes, jobs := new(message.PartitionInfo), new(message.NodeInfo), new(message.JobInfo)
			partitions.Partitions.Each = count.Partition
			nodes.Nodes.Each = func(n *model.Node) error { return count.Node(n, []string{"fake"}) }
			jobs.Jobs.Each = func(j *model.Job) error { return count.Job(j, "alice") }
			stats, shares := new(message.ControllerStats), new(message.Shares)
			shares.Shares.Each = count.Share
			decode(t, answers["partitions"], partitions)
			decode(t, answers["nodes"], nodes)
			decode(t, answers["jobs"], jobs)
			decode(t, answers["stats"], stats)
			count.Scheduler(&stats.ControllerStats)
			decode(t, answers["shares"], shares)
			got := parse(t, render(t, count))

			want := map[string]float64{}
			for _, item := range answers["jobs"].Decoded.Items {
				j := item.Jobs
				want["slurm_user_jobs{username=\"alice\"}"]++
				want["slurm_account_jobs{account=\""+j.Account+"\"}"]++
				if s := model.JobState(j.JobState); s.Base() == model.JobRunning {
					want["slurm_jobs_running"]++
					want["slurm_partition_jobs_running{partition=\""+j.Partition+"\"}"]++
				} else if s.Ended() {
					want["slurm_jobs_finished"]++
				}
			}
			for _, item := range answers["nodes"].Decoded.Items {
				n := item.Nodes
				want["slurm_nodes"]++
				want["slurm_node_cpus_alloc{node=\""+n.Name+"\"}"] = float64(n.AllocCPUs)
				want["slurm_node_memory_bytes{node=\""+n.Name+"\"}"] = float64(n.Memory)
				want["slurm_partition_nodes_cpus_alloc{partition=\"fake\"}"] += float64(n.AllocCPUs)
				want["slurm_partition_nodes_cpus_efctv{partition=\"fake\"}"] += float64(n.CPUs)
				want["slurm_partition_nodes_mem_tot{partition=\"fake\"}"] += float64(n.Memory)
				want[cluster.Prefix+"cpus{state=\"allocated\"}"] += float64(n.AllocCPUs)
				if model.NodeState(n.NodeState).Base() == model.NodeDown {
					want["slurm_nodes_down"]++
				}
			}
			want["slurm_partitions"] = float64(len(answers["partitions"].Decoded.Items))
			if len(want) < 10 || want["slurm_jobs_running"] == 0 || want["slurm_nodes_down"] == 0 {
				t.Fatalf("the captures have too few records: %v", want)
			}
			for name, n := range want {
				if v, ok := got[name]; !ok || v != n {
					t.Errorf("%s is %v, want %v", name, v, n)
				}
			}
			if got["slurm_sched_stats_timestamp"] < 1.7e9 {
				t.Errorf("statistics of %v", got["slurm_sched_stats_timestamp"])
			}
		})
	}
	if captures < int(codec.Newest-codec.Oldest) {
		t.Errorf("%d captures", captures)
	}
}

func readCaptures(t *testing.T, file string) map[string]capture {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]json.RawMessage{}
	if err := json.NewDecoder(z).Decode(&all); err != nil {
		t.Fatal(err)
	}
	captures := map[string]capture{}
	for _, name := range []string{"partitions", "nodes", "jobs", "stats", "shares"} {
		var c capture
		if err := json.Unmarshal(all[name], &c); err != nil && name != "stats" && name != "shares" {
			t.Fatal(err)
		}
		captures[name] = c
	}
	return captures
}

func decode(t *testing.T, c capture, body message.Body) {
	t.Helper()
	raw, err := hex.DecodeString(c.Frame)
	if err != nil || len(raw) < 4 {
		t.Fatalf("%v: %d bytes", err, len(raw))
	}
	frame, err := message.ParseFrame(raw[4:])
	if err != nil {
		t.Fatal(err)
	}
	if err := message.DecodeBody(frame.Header.Version, 0, frame.Body, body); err != nil {
		t.Fatal(err)
	}
}
