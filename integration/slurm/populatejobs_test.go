package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var jobs map[string]string // numbers of the jobs, by name

// populateJobs submits jobs that differ in their requests and in their final
// states.
func (m *machine) populateJobs(t *testing.T) {
	script := "#!/bin/sh\n# " + strings.Repeat("a long script ", 500) + "\nexit 0\n"
	must(t, os.WriteFile(filepath.Join(m.root, "tmp/long.sh"), []byte(script), 0o755))
	big := "BIG=" + strings.Repeat("x", 100_000)

	submit := func(user string, args ...string) string {
		t.Helper()
		out, err := m.try(user, append([]string{"sbatch", "--parsable", "-o", "/tmp/%u-%j.out"}, args...)...)
		if err != nil {
			t.Logf("not in %s: %v", m.release, err)
			return ""
		}
		// A warning may come before the number.
		lines := strings.Split(out, "\n")
		return strings.TrimSpace(lines[len(lines)-1])
	}
	long := "--wrap=sleep 1000"
	jobs = map[string]string{
		"done":    submit("alice", "-J", "done", "--wrap=srun sleep 1; echo x"),
		"failed":  submit("alice", "-J", "failed", "--wrap=exit 7"),
		"signal":  submit("alice", "-J", "signal", "--wrap=kill -SEGV $$"),
		"array":   submit("alice", "-J", "array", "--array=1-5%2", long),
		"derived": submit("alice", "-J", "derived", "--wrap=srun sh -c 'exit 5'; srun sh -c 'kill -KILL $$'; exit 0"),
		"inside":  submit("bob", "-J", "inside", "--reservation=cores", "-A", "optics", "--wrap=srun sleep 1"),
		"again":   submit("alice", "-J", "again", "--requeue", "--mem=10M", "--extra=some", "--comment=comes again", "--wrap=srun sleep 1000"),
		"steps":   submit("bob", "-n2", "-J", "steps", "--wrap=srun -n2 hostname; srun -n1 -J second sleep 600"),
		"held":    submit("alice", "-H", "-J", "held", "--comment=of the owner", "--nice=50", long),
		"holes":   submit("bob", "-H", "-J", "holes", "--array=1-9:2,100,2000-2003", long),
		"gres":    submit("alice", "-J", "gres", "--gres=gpu:tesla:1", "--mem=100M", long),
		"gpus":    submit("bob", "-J", "gpus", "-p", "fake", "-N2", "--gpus-per-node=tesla:2", "--cpus-per-gpu=3", "--mem-per-gpu=1G", long),
		"many":    submit("bob", "-J", "many", "-p", "fake", "-N2-4", "--ntasks-per-node=3", "-c2", "--tmp=2G", "--mincpus=4", "--exclusive", "-x", "n05", "--sockets-per-node=2", long),
		"feature": submit("alice", "-J", "feature", "-C", "ssd&fast", "-t", "5:00", "--time-min=2", long),
		"license": submit("alice", "-J", "license", "-L", "matlab:3", "-q", "quick", "-t", "20", long),
		"later":   submit("alice", "-J", "later", "--begin=now+2hours", "--deadline=now+9hours", "-t", "30", "--mail-type=ALL", "--mail-user=alice@example.org", long),
		"unicode": submit("alice", "-H", "-J", "größe \"λ\\ 名前\" <&>", "--comment=\ttab ünd\u2028line", "--wckey=ключ", long),
		"big":     submit("alice", "-H", "-J", "big", "--export=ALL,"+big, "/tmp/long.sh", "one", "two words", "ü"),
		"batch":   submit("alice", "-J", "batch", "--requeue", "--open-mode=append", "-e", "/tmp/%j.err", "-i", "/dev/null", "--signal=B:USR1@60", "--priority=100", "--kill-on-invalid-dep=yes", "-s", long),
		"cancel":  submit("bob", "-J", "cancel", long),
		"reserve": submit("alice", "-J", "reserve", "--reservation=daily", "-t", "10", long),
		"where":   submit("bob", "-H", "-J", "where", "-w", "n0[3-4]", "-p", "fake,debug", "-N2", "--contiguous", "--distribution=cyclic:block", "--hint=nomultithread", "--core-spec=1", "--profile=none", long),
		"het":     submit("alice", "-J", "het", "-n1", "--mem=10M", ":", "-n2", "--mem=20M", long),
		"wait":    submit("bob", "-J", "wait", "-p", "debug,fake", "-w", "node1", "--mem=3900M", "--cpu-freq=1000000-2000000:OnDemand", "--delay-boot=5", "--wckey=spectra", "-t", "20", long),
		"shape":   submit("alice", "-H", "-J", "shape", "-B", "2:4:1", "--ntasks-per-core=1", "--ntasks-per-socket=2", "--switches=2@10:00", "--prefer=ssd", "--network=none", "--mcs-label=alice", long),
		"socket":  submit("alice", "-H", "-J", "socket", "--gpus=2", "--ntasks-per-gpu=1", "--gpu-bind=single:1", "--gpu-freq=low", long),
		"sockets": submit("bob", "-H", "-J", "sockets", "-p", "fake", "--gpus-per-socket=1", "--sockets-per-node=2", "--gpus-per-task=1", "-n2", "--thread-spec=1", long),
		"bundle":  submit("alice", "-H", "-J", "bundle", "--container=/tmp/bundle", long),
		"ident":   submit("alice", "-H", "-J", "ident", "--container-id=c0ffee", long),
		"bursts":  submit("alice", "-H", "-J", "bursts", "--bb=capacity=1G", "-C", "ssd&fast", "--batch=fast", "--use-min-nodes", long),
		"label":   submit("alice", "-J", "label", "--mcs-label=alice", "--nice=-0", "-t", "9", long),
		"sets":    submit("alice", "-J", "sets", "-H", "-p", "sets", "-A", "physics", "-q", "normal", "-N1", "--gpus-per-node=1", long),
	}
	jobs["after"] = submit("alice", "-J", "after", "-d", "afterok:"+jobs["held"]+"?afterany:"+jobs["array"], long)
	jobs["never"] = submit("bob", "-J", "never", "-d", "afterok:"+jobs["failed"], "--kill-on-invalid-dep=no", long)
	for name, id := range jobs {
		if id == "" {
			delete(jobs, name)
		}
	}
	for name, states := range map[string]string{"done": "COMPLETED FAILED", "failed": "FAILED", "signal": "FAILED", "gres": "RUNNING", "steps": "RUNNING",
		"derived": "COMPLETED FAILED", "again": "RUNNING"} {
		eventually(t, "job "+name+" is "+states, func() bool {
			return strings.Contains(states, m.run(t, "root", "squeue", "-h", "-t", "all", "-j", jobs[name], "-o", "%T"))
		})
	}
	m.run(t, "bob", "scancel", jobs["cancel"])
	eventually(t, "job gres has run for some time before it is suspended", func() bool {
		ran := m.run(t, "root", "squeue", "-h", "-j", jobs["gres"], "-o", "%M")
		return ran != "0:00" && ran != "0:01"
	})
	m.run(t, "root", "scontrol", "suspend", jobs["gres"])
	m.run(t, "root", "scontrol", "update", "JobId="+jobs["held"], "AdminComment=an-administrator's", "Priority=0")
	m.attempt(t, "root", "scontrol update JobId="+jobs["held"]+" Extra=more")
	m.attempt(t, "root", "scontrol requeue "+jobs["again"])
	m.run(t, "slurm", "sacctmgr", "-i", "rollup", "now-2hours", "now+2hours") // otherwise slurmdbd computes the usage at the next full hour
}
