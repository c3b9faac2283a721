package slurm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scriptOptions are lines of options in scripts, with each kind of value.
var scriptOptions = strings.Split(strings.TrimSpace(`
--acctg-freq=task=30
--array=0-6:2%2
-a 1,3-5
--begin=2031-01-20T12:34:00
--begin=2031-01-20
-D /var
--comment="some words"
--constraint=ssd&fast
--container=/tmp/bundle
--container-id=c0ffee
--contiguous
--cores-per-socket=1
--cpu-freq=low
--cpu-freq=1000000-2000000:OnDemand
--gpus=1 --cpus-per-gpu=2 -p fake
--gpus=tesla:1 --mem-per-gpu=100M -p fake
--gpus-per-node=tesla:2 -p fake
--gpus-per-task=1 -n2 -p fake
--gpus-per-socket=1 --sockets-per-node=2 -p fake
--gpus=2 --ntasks-per-gpu=1 -p fake
--gpus=1 --gpu-bind=single:1 --gpu-freq=low -p fake
--gres=gpu:tesla:1 -p fake
--gres-flags=disable-binding
--gres-flags=enforce-binding
-c 2
--deadline=2031-01-20T12:34:00 -t 5
--delay-boot=5
--dependency=singleton
--distribution=cyclic:block
-m plane=2 -n4
-e /tmp/%j.err
-x n05
--exclusive
--exclusive=user
--exclusive=mcs
--export=NONE
--export=ALL,X=1
--export=X=1
--extra=some
-B 1:1:1
--hint=nomultithread
--hint=compute_bound
--hint=memory_bound
--hint=multithread
-i /dev/null
-J precious
--kill-on-invalid-dep=yes
--kill-on-invalid-dep=no
-L matlab:1
--mail-type=ALL
--mail-type=BEGIN,TIME_LIMIT_80
--mail-type=NONE --mail-user=alice@example.org
--mem=100M
--mem=1G
--mem=0
--mem-per-cpu=10
--mem-bind=local
--mem-bind=verbose,none
--mincpus=2
--network=none
--nice
--nice=5
--no-kill
--no-kill=off
--no-requeue
--requeue
-w node1
-w n0[3-4] -p fake
-N 1-2
-N2 -n4 --ntasks-per-node=2
-N 4 -p fake
-n 2
-n2 --ntasks-per-core=1
-n2 --ntasks-per-socket=2
--oom-kill-step
--oom-kill-step=0
--open-mode=append
--open-mode=truncate
-O -n2
-s
-p debug,fake
--prefer=ssd
--profile=all
--profile=task,energy
--profile=none
-q quick
--reboot
--signal=USR1@60
--signal=B:TERM
--signal=10@120
--spread-job
--switches=2
--switches=2@10:00
--thread-spec=1 --exclusive
--core-spec=1 --exclusive
--threads-per-core=1
-t 5
-t 1-2:03:04
-t 10:30 --time-min=2
-t UNLIMITED
--tmp=2G
--tres-per-task=cpu:2 -n2
--use-min-nodes
--wait-all-nodes=1
--wait-all-nodes=0
--wckey=spectra
--mem=10 --unknown=1
--time=yesterday
-n zero
`), "\n")

// ownOfCommand are the fields that say which command submitted the job.
var ownOfCommand = []string{"command", "submit_line", "job_id", "submit_time", "eligible_time", "last_sched_evaluation", "priority", "container_id", "priority_by_partition",
	"array_job_id", "standard_output", "standard_error", "stdout_expanded", "stderr_expanded", "stdin_expanded", "job_resources"}

// ofSbatch matches the differences that sbatch's own record of its options
// makes, and that no field of the API sets: which numbers the user gave, and the
// resources of each task, which srun in the job computes again from its own
// options and from SLURM_CPUS_PER_TASK and its like.
var ofSbatch = regexp.MustCompile(`^(-c 2|--tres-per-task=.*|--gpus-per-task=.*): (tres_per_task|tres_bind|max_nodes|minimum_cpus_per_node): `)

// Flags that say which numbers the user gave, and one that the controller sets
// later.
var flagsOfCommand = []any{"EXACT_CPU_COUNT_REQUESTED", "EXACT_TASK_COUNT_REQUESTED", "DEPENDENT"}

// TestScriptOptions submits scripts with sbatch and with schedctl. Each job must
// have the same record, and what sbatch refuses must be refused.
func TestScriptOptions(t *testing.T) {
	m := useCluster(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	must(t, m.install("schedctl"))
	token, err := m.createToken("alice")
	must(t, err)
	client := m.client(gatewaySocket)
	record := func(id string) map[string]any {
		a, err := sendRequest(client, "GET", "/slurm/v0.0.42/job/"+id, "", "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		var shown struct{ Jobs []map[string]any }
		if err := json.Unmarshal(a.body, &shown); err != nil || a.status != http.StatusOK || len(shown.Jobs) == 0 {
			t.Fatalf("job %s: status %d, %v: %.500s", id, a.status, err, a.body)
		}
		for _, name := range ownOfCommand {
			delete(shown.Jobs[0], name)
		}
		if flags, ok := shown.Jobs[0]["flags"].([]any); ok {
			shown.Jobs[0]["flags"] = slices.DeleteFunc(flags, func(flag any) bool { return slices.Contains(flagsOfCommand, flag) })
		}
		return shown.Jobs[0]
	}
	submit := func(line string, args ...string) (map[string]any, error) {
		t.Helper()
		script := fmt.Sprintf("#!/bin/sh\n#SBATCH --hold\n#SBATCH %s\nexit 0\n", line)
		must(t, os.WriteFile(filepath.Join(m.root, "tmp/options.sh"), []byte(script), 0o755))
		out, err := m.try("alice", args...)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		id := strings.TrimSpace(lines[len(lines)-1])
		job := record(id)
		m.run(t, "alice", "scancel", id)
		return job, nil
	}
	differences := func(line string) (list []string) {
		theirs, theirErr := submit(line, "sbatch", "--parsable", "/tmp/options.sh")
		if theirErr != nil && strings.Contains(theirErr.Error(), "unrecognized option") { // this release lacks it
			return nil
		}
		ours, err := submit(line, "env", "SLURM_JWT="+token, "SCHED_URL=unix:"+gatewaySocket, "/opt/gateway/schedctl", "submit", "/tmp/options.sh")
		if (theirErr == nil) != (err == nil) {
			return []string{fmt.Sprintf("sbatch %v, schedctl %v", theirErr, err)}
		}
		for _, name := range slices.Sorted(maps.Keys(theirs)) {
			a, _ := json.Marshal(theirs[name])
			b, _ := json.Marshal(ours[name])
			if string(a) != string(b) {
				list = append(list, fmt.Sprintf("%s: sbatch %s, schedctl %s", name, a, b))
			}
		}
		return list
	}
	plain := differences("--job-name=options.sh")
	t.Logf("without options: %q", plain)
	for _, line := range scriptOptions {
		for _, d := range differences(line) {
			if m.release == "22.05" && strings.HasPrefix(d, "cpu_frequency_governor: ") { // which sbatch leaves to slurmd there
				continue
			}
			if text := line + ": " + d; !slices.Contains(plain, d) && !ofSbatch.MatchString(text) {
				t.Error(text)
			}
		}
	}
}
