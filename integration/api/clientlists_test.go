package api

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/integration/page"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// TestCommonLists runs the blocks about common lists in the guide for clients,
// in both spellings of the paths. The controller has a running job of this
// user, a node that is down and nodes with GPUs. Accounting has a job that has
// failed.
func TestCommonLists(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"curl", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	l, s := harness.NewLab(t), newFakeController(t)
	failed := l.Submit("exit 3", map[string]any{"name": "bad"})
	l.Submit("true", map[string]any{"name": "good"})
	for name, state := range map[string]string{"bad": "FAILED", "good": "COMPLETED"} {
		harness.Eventually(t, "the jobs are recorded", func() bool {
			a := l.Request("GET", "/scheddb/"+harness.Version+"/jobs?job_name="+name+"&state="+state, "")
			return len(a.List("jobs")) == 1
		})
	}
	encode := func(typ message.Type, body message.Body) []byte {
		b, err := message.Encode(codec.Newest, 0, typ, nil, body)
		harness.Must(t, err)
		return b
	}
	me := uint32(os.Getuid())
	job := func(id, uid uint32, name string, state model.JobState) model.Job {
		return model.Job{StepID: model.StepID{JobID: id}, UserID: uid, Name: name, State: state, Nodes: "n1", Detailed: true}
	}
	jobs := &message.JobInfo{LastUpdate: 7}
	jobs.Jobs.List = []model.Job{job(7, me, "train", model.JobRunning), job(8, me, "next", model.JobPending), job(9, me+1, "other", model.JobRunning)}
	nodes := &message.NodeInfo{LastUpdate: 7}
	nodes.Nodes.List = []model.Node{
		{Name: "n1", State: model.NodeMixed, GRES: "gpu:a100:4(S:0-1),nic:1", GRESUsed: "gpu:a100:1(IDX:0),nic:0"},
		{Name: "n2", State: model.NodeDown | model.NodeNotResponding, Reason: "disk fails", GRES: "gpu:a100:4(S:0-1)", GRESUsed: "gpu:a100:0(IDX:N/A)"},
		{Name: "n3", State: model.NodeIdle, GRES: "gpu:2", GRESUsed: "gpu:0"},
	}
	partitions := &message.PartitionInfo{LastUpdate: 7}
	partitions.Partitions.List = []model.Partition{{Name: "all", Nodes: "n[1-3]"}, {Name: "small", Nodes: "n3"}}
	allJobs := encode(message.ResponseJobInfo, jobs)
	s.answers = map[message.Type][]byte{
		message.RequestJobInfo: allJobs, message.RequestJobUserInfo: allJobs, message.RequestNodeInfo: encode(message.ResponseNodeInfo, nodes),
		message.RequestPartitionInfo: encode(message.ResponsePartitionInfo, partitions),
	}
	k := startGatewayFor(l, t, s, "SCHEDRESTD_NAMES=both")

	blocks, err := page.Blocks(filepath.Join(harness.Root, "docs/CLIENTS.md"))
	harness.Must(t, err)
	for _, spelling := range []string{"sched", "slurm"} {
		dir := t.TempDir()
		harness.Must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("X-SCHED-USER-TOKEN: "+l.OwnToken+"\n"), 0o600))
		var sh, python bytes.Buffer
		for _, b := range blocks {
			if b.Heading != "Common lists" {
				continue
			}
			text := strings.NewReplacer("http://127.0.0.1:6820", "http://"+k.Address, "sched/v", spelling+"/v", "scheddb/v", spelling+"db/v",
				"sleep 2", "sleep 0", "sleep(2)", "sleep(0)", "limit=100", "limit=2").Replace(b.Text)
			program, out := []string{"bash", "-e"}, &sh
			if b.Language == "python" {
				program, out = []string{"python3", "-"}, &python
			} else {
				text = "URL=http://" + k.Address + "/" + spelling + "/v0.0.43\nme=$(id -un)\n" + text
			}
			cmd := exec.Command(program[0], program[1:]...)
			cmd.Dir, cmd.Env, cmd.Stdin = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SCHED_JWT=" + l.OwnToken}, strings.NewReader(text)
			var errOut bytes.Buffer
			cmd.Stdout, cmd.Stderr = out, &errOut
			if err := cmd.Run(); err != nil {
				t.Errorf("%s: CLIENTS.md:%d: %v\n%s%s", spelling, b.Line, err, out, &errOut)
			}
		}
		for _, want := range []string{`{"jobs":[{"job_id":7,"name":"train","nodes":"n1"}],`, fmt.Sprintf(`{"jobs":[{"job_id":%d,"name":"bad","state":{"current":["FAILED"]}}],`, failed),
			`{"nodes":[{"name":"n2","state":["DOWN","NOT_RESPONDING"],"reason":"disk fails"}],`, `"gres":"gpu:a100:4(S:0-1),nic:1"`, "200\n304\n304\n"} {
			if strings.Count(sh.String(), want) != 1 {
				t.Errorf("%s: not once: %q in\n%s", spelling, want, &sh)
			}
		}
		want := fmt.Sprintf("running: 7 train on n1\nfailed: %d bad FAILED\ndown: n2 DOWN+NOT_RESPONDING disk fails\nfree GPUs: all 5\nfree GPUs: small 2\njob: 7 train\njob: 8 next\njob: 9 other\nchanged 2\nnot changed 2\nnot changed 2\n", failed)
		if python.String() != want {
			t.Errorf("%s: the program printed\n%swant\n%s", spelling, &python, want)
		}
		if saved, err := os.ReadFile(filepath.Join(dir, "jobs.json")); err != nil || strings.Count(string(saved), `"job_id"`) != 2 {
			t.Errorf("%s: %v, jobs.json has\n%s", spelling, err, saved)
		}
	}
}
