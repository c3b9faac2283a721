package slurm

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// watchedVersion is a version that the gateway serves with each release of Slurm.
const watchedVersion = "v0.0.42"

// changeConf changes slurm.conf, starts slurmctld again, and waits for node1. Each
// key of settings is a setting that the file may have already.
func (m *machine) changeConf(t *testing.T, settings map[string]string) {
	t.Helper()
	m.restartWith(t, settings)
	m.awaitNode(t)
}

// restartWith changes slurm.conf, and starts slurmctld again.
func (m *machine) restartWith(t *testing.T, settings map[string]string) {
	t.Helper()
	file := filepath.Join(m.root, "etc/slurm/slurm.conf")
	text, err := os.ReadFile(file)
	must(t, err)
	for name, value := range settings {
		text = regexp.MustCompile(`(?m)^`+name+`=.*\n`).ReplaceAll(text, nil)
		text = append(text, name+"="+value+"\n"...)
	}
	must(t, os.WriteFile(file, text, 0))
	m.signal(t, "slurmctld", "TERM")
	m.awaitExit(t, "slurmctld")
	m.restart(t, "slurmctld")
}

func (m *machine) awaitExit(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" has exited", func() bool {
		_, err := m.try("root", "pgrep", "-x", name)
		return err != nil
	})
}

// awaitNode waits until node1 can run jobs.
func (m *machine) awaitNode(t *testing.T) {
	t.Helper()
	eventually(t, "node1 has registered", func() bool {
		out, err := m.try("root", "scontrol", "-o", "show", "node", "node1")
		return err == nil && strings.Contains(out, "Arch=") && regexp.MustCompile(`State=(IDLE|MIXED|ALLOCATED) `).MatchString(out)
	})
}

// TestFollow changes jobs, nodes, partitions and reservations with Slurm's
// commands, and restarts the controller, while clients follow the lists. No event
// may contradict what a client knows, or show the job of another user. In the end
// each client must know what a fresh list has.
func TestFollow(t *testing.T) {
	m := freshCluster(t)
	m.changeConf(t, map[string]string{"PrivateData": "jobs"})
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	bob, err := m.createToken("bob")
	must(t, err)
	follower := func(token, list, key, query string) *harness.Follower {
		client := m.client(gatewaySocket)
		client.Timeout = 0
		return &harness.Follower{Client: client, URL: "http://gateway/sched/" + watchedVersion + "/" + list + query, Token: token, List: list, Key: key}
	}
	othersOf := func(user string) func(map[string]any) bool {
		return func(job map[string]any) bool { return job["user_name"] != nil && job["user_name"] != user }
	}
	ofAlice, ofBob := follower(m.token, "jobs", "job_id", ""), follower(bob, "jobs", "job_id", "?fields=job_id,job_state,comment,user_name")
	ofAlice.Forbidden, ofBob.Forbidden = othersOf("alice"), othersOf("bob")
	followers := []*harness.Follower{
		ofAlice, ofBob,
		follower(m.admin, "jobs", "job_id", ""),
		follower(m.admin, "jobs", "job_id", "?state=RUNNING,SUSPENDED&fields=job_id,job_state,nodes"),
		follower(m.admin, "jobs", "job_id", "?users=bob&fields=job_id,array_task_id,array_task_string,job_state"),
		follower(m.admin, "nodes", "name", ""),
		follower(m.token, "partitions", "name", ""),
		follower(m.token, "reservations", "name", ""),
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	for _, f := range followers {
		clients.Go(func() { f.Run(ctx) })
	}

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	done := map[string]int{}
	for n := range 120 {
		switch n {
		case 40:
			m.signal(t, "slurmctld", "KILL")
			m.restart(t, "slurmctld")
		case 60:
			m.signal(t, "slurmctld", "TERM")
			m.awaitExit(t, "slurmctld")
			m.restart(t, "slurmctld")
		case 90: // the process then has another name
			m.run(t, "root", "scontrol", "reconfigure")
		}
		user, line := m.randomChange(random, n)
		if _, err := m.try(user, line...); err == nil { // most changes suit only some jobs
			done[line[0]]++
		}
	}
	t.Logf("successful commands: %v", done)
	if done["sbatch"] == 0 || done["scontrol"] == 0 || done["scancel"] == 0 {
		t.Error("a command never succeeded")
	}
	m.run(t, "root", "scancel", "--quiet", "-u", "alice")
	m.run(t, "root", "scancel", "--quiet", "-u", "bob")
	awaitLists(t, followers)

	// slurmctld says that the jobs have not changed, although they have.
	m.run(t, "root", "scontrol", "update", "PartitionName=sets", "State=UP", "MaxTime=71")
	job := m.run(t, "alice", "sbatch", "--parsable", "-H", "-p", "sets", "-o", "/dev/null", "--wrap", "true")
	hasLimit := func(minutes string) {
		t.Helper()
		eventually(t, "the job has the partition's limit of "+minutes+" minutes", func() bool {
			return regexp.MustCompile(`time_limit:map\[[^]]*number:` + minutes + `\b`).MatchString(ofAlice.Seen().Records[job])
		})
	}
	hasLimit("71")
	time.Sleep(3 * time.Second) // until slurmctld no longer takes the submission for a change
	m.run(t, "root", "scontrol", "update", "PartitionName=sets", "MaxTime=72")
	hasLimit("72")
	awaitLists(t, followers)
	cancel()
	clients.Wait()
	for _, f := range followers {
		seen := f.Seen()
		for _, fault := range seen.Faults {
			t.Errorf("%s: %s", f.URL, fault)
		}
		t.Logf("%s: %d records, %d streams went on, %d began again, ends %v", f.URL, len(seen.Records), seen.Resumed, seen.Resets, seen.Ends)
	}
}

// awaitLists waits until each client knows what a fresh list has.
func awaitLists(t *testing.T, followers []*harness.Follower) {
	t.Helper()
	for _, f := range followers {
		eventually(t, f.URL+" is followed to the end", func() bool { return f.Missing() == "" })
	}
}

// randomChange returns a command that changes something, and its user.
func (m *machine) randomChange(random *rand.Rand, n int) (user string, line []string) {
	user = users[random.IntN(len(users))].name
	one := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	job := func() string {
		out, _ := m.try("root", "squeue", "-h", "-t", "all", "-o", one("%A", "%i"))
		return one(strings.Fields(out + " 1")...)
	}
	submit := []string{"sbatch", "-o", "/dev/null", "-t", "5"}
	switch random.IntN(16) {
	case 0, 1:
		return user, append(submit, "--wrap", "sleep "+one("0", "1", "5"))
	case 2:
		return user, append(submit, "-H", "--wrap", "sleep 1")
	case 3:
		return user, append(submit, "-a", one("0-3", "1-9:4", "0-7%2"), "--wrap", "sleep "+one("0", "2"))
	case 4:
		return user, append(submit, "-n1", "--wrap", "sleep 2", ":", "-n1")
	case 5, 6:
		return "root", []string{"scancel", job()}
	case 7:
		return "root", []string{"scontrol", "update", "JobId=" + job(), one("Comment=a", "Comment=b", "Nice=5", "TimeLimit=3", "AdminComment=c", "Priority=7")}
	case 8:
		return "root", []string{"scontrol", one("hold", "release", "requeue", "requeuehold"), job()}
	case 9:
		return "root", []string{"scontrol", one("suspend", "resume"), job()}
	case 10:
		return "root", []string{"scontrol", "update", "NodeName=" + one("n01", "n02", "node1"), one("State=DRAIN", "State=RESUME", "State=UNDRAIN"), "Reason=x"}
	case 11:
		return "root", []string{"scontrol", "update", "NodeName=" + one("n01", "n02"), one("Comment=a", "Extra=b", "Weight=3", "Weight=4")}
	case 12:
		return "root", []string{"scontrol", "update", "PartitionName=" + one("fake", "sets"), one("State=UP", "State=DOWN", "MaxTime=30", "MaxTime=60")}
	case 13:
		return "root", []string{"scontrol", "create", "reservation", fmt.Sprint("ReservationName=r", n), "StartTime=" + one("now", "now+1hour"), "Duration=" + one("1", "30"), "Users=alice", "Nodes=" + one("n01", "n03"), "Flags=" + one("MAINT,IGNORE_JOBS", "DAILY,IGNORE_JOBS")}
	case 14:
		return "root", []string{"scontrol", "update", fmt.Sprint("ReservationName=r", random.IntN(n+1)), one("Duration=20", "Users=bob", "Nodes=n02")}
	default:
		return "root", []string{"scontrol", "delete", fmt.Sprint("ReservationName=r", random.IntN(n+1))}
	}
}

// TestWaitForJob waits for the end of jobs, while they end in several ways.
func TestWaitForJob(t *testing.T) {
	m := freshCluster(t)
	m.changeConf(t, map[string]string{"MinJobAge": "2"})
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	submit := []string{"sbatch", "--parsable", "-o", "/dev/null", "-t", "5"}
	const cancelled, completed = "CANCELLED", "COMPLETED"
	for _, tt := range []struct {
		name   string
		job    []string
		then   []string // "JOB" stands for the job
		before string   // state that the job must have had before
		task   string   // added to the number of the job
		want   []string // state of each record
		purged bool     // the client asks only when the controller no longer knows the job
	}{
		{name: "job", job: []string{"--wrap", "sleep 1"}, want: []string{completed}},
		{name: "array", job: []string{"-a", "0-3%1", "--wrap", "sleep 1"}, want: []string{completed, completed, completed, completed}},
		{name: "task of an array", job: []string{"-a", "0-2%1", "--wrap", "sleep 1"}, task: "_1", want: []string{completed}},
		{name: "heterogeneous job", job: []string{"-H", "-n1", "--wrap", "sleep 1", ":", "-n1"}, then: []string{"scancel", "JOB"}, want: []string{cancelled, cancelled}},
		{name: "pending job", job: []string{"-H", "--wrap", "sleep 1"}, then: []string{"scancel", "JOB"}, want: []string{cancelled}},
		{name: "requeued job", job: []string{"--requeue", "--wrap", "sleep 600"}, before: "RUNNING", then: []string{"sh", "-c", "scontrol requeuehold JOB; sleep 3; scancel JOB"}, want: []string{cancelled}},
		{name: "job in accounting", job: []string{"--wrap", "true"}, purged: true, want: []string{completed}},
		{name: "array in accounting", job: []string{"-a", "1,5", "--wrap", "true"}, purged: true, want: []string{completed, completed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			id := m.run(t, "alice", append(submit, tt.job...)...)
			if tt.purged {
				eventually(t, "the controller has forgotten the job", func() bool {
					_, err := m.try("root", "scontrol", "show", "job", id)
					return err != nil
				})
			}
			if tt.before != "" {
				eventually(t, "the job is "+tt.before, func() bool { return m.run(t, "root", "squeue", "-h", "-j", id, "-o", "%T") == tt.before })
			}
			var changer sync.WaitGroup
			if tt.then != nil {
				line := strings.Split(strings.ReplaceAll(strings.Join(tt.then, "\n"), "JOB", id), "\n")
				changer.Go(func() {
					time.Sleep(time.Second) // so that the client waits
					if out, err := m.try("root", line...); err != nil {
						t.Error(out, err)
					}
				})
			}
			defer changer.Wait()
			var body struct {
				Jobs []struct {
					ID    uint32   `json:"job_id"`
					State []string `json:"job_state"`
				}
			}
			var states []string
			eventually(t, "the request is answered", func() bool { // at the end of the time, the answer has other states
				a, err := sendRequest(m.client(gatewaySocket), "GET", "/sched/"+watchedVersion+"/job/"+id+tt.task+"?until=ended&wait=60s", "", "X-SCHED-USER-TOKEN: "+m.token)
				must(t, err)
				if a.status != http.StatusOK {
					t.Fatalf("status %d: %s", a.status, a.body)
				}
				must(t, json.Unmarshal(a.body, &body))
				states = nil
				for _, job := range body.Jobs {
					states = append(states, strings.Join(job.State, " "))
				}
				return !slices.ContainsFunc(states, func(s string) bool { return strings.Contains(s, "PENDING") || strings.Contains(s, "RUNNING") })
			})
			if !slices.Equal(states, tt.want) {
				t.Errorf("the answer has %+v, want %q", body.Jobs, tt.want)
			}
		})
	}
}
