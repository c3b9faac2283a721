package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// furnish fills the cluster with what an answer can show: jobs in many states, reservations, nodes
// that are drained. Every entry is a command of Slurm's.
func (m *machine) furnish(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { m.run(t, "root", "scancel", "--user=alice"); m.run(t, "root", "scancel", "--user=bob") })
	script := "#!/bin/sh\n# " + strings.Repeat("a long script ", 500) + "\nexit 0\n"
	must(t, os.WriteFile(filepath.Join(m.root, "tmp/long.sh"), []byte(script), 0o755))
	big := "BIG=" + strings.Repeat("x", 100_000)

	for _, set := range []string{
		"NodeName=n01 State=DRAIN Reason=smells-of-smoke",
		"NodeName=n02 Comment=a-comment Extra=an-extra",
		"NodeName=node1 Comment=the-only-one Weight=7",
	} {
		m.run(t, "root", append([]string{"scontrol", "update"}, strings.Fields(set)...)...)
	}
	for _, reservation := range []string{
		"ReservationName=upgrade StartTime=now+3days Duration=2:00:00 Nodes=n[03-04] Users=alice,bob Flags=maint,ignore_jobs Comment=new-kernel",
		"ReservationName=daily StartTime=now+2days Duration=60 NodeCnt=1 PartitionName=debug Accounts=physics Flags=daily",
		"ReservationName=spare StartTime=now+5days Duration=1-0 Licenses=matlab:2 Users=bob Flags=any_nodes,license_only",
		"ReservationName=small StartTime=now+9days Duration=30 Nodes=n06 Users=alice MaxStartDelay=60 Flags=purge_comp=5:00",
	} {
		if out, err := m.try("root", append([]string{"scontrol", "create", "reservation"}, strings.Fields(reservation)...)...); err != nil {
			t.Logf("not in %s: %v %s", m.release, err, out)
		}
	}

	submit := func(user string, args ...string) string {
		t.Helper()
		out, err := m.try(user, append([]string{"sbatch", "--parsable", "-o", "/tmp/%u-%j.out"}, args...)...)
		if err != nil {
			t.Logf("not in %s: %v", m.release, err)
			return ""
		}
		// Without a user's name in front of it, a warning may come before the number.
		lines := strings.Split(out, "\n")
		return strings.TrimSpace(lines[len(lines)-1])
	}
	long := "--wrap=sleep 1000"
	jobs = map[string]string{
		"done":    submit("alice", "-J", "done", "--wrap=srun sleep 1; echo x"),
		"failed":  submit("alice", "-J", "failed", "--wrap=exit 7"),
		"signal":  submit("alice", "-J", "signal", "--wrap=kill -SEGV $$"),
		"steps":   submit("bob", "-n2", "-J", "steps", "--wrap=srun -n2 hostname; srun -n1 -J second sleep 600"),
		"held":    submit("alice", "-H", "-J", "held", "--comment=of the owner", "--nice=50", long),
		"array":   submit("alice", "-J", "array", "--array=1-5%2", long),
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
		"het":     submit("alice", "-J", "het", "-H", "-n1", "--mem=10M", ":", "-n2", "--mem=20M", long),
	}
	jobs["after"] = submit("alice", "-J", "after", "-d", "afterok:"+jobs["held"]+"?afterany:"+jobs["array"], long)
	jobs["never"] = submit("bob", "-J", "never", "-d", "afterok:"+jobs["failed"], "--kill-on-invalid-dep=no", long)
	for name, id := range jobs {
		if id == "" {
			delete(jobs, name)
		}
	}
	for name, states := range map[string]string{"done": "COMPLETED FAILED", "failed": "FAILED", "signal": "FAILED", "gres": "RUNNING", "steps": "RUNNING"} {
		eventually(t, "job "+name+" is "+states, func() bool {
			return strings.Contains(states, m.run(t, "root", "squeue", "-h", "-t", "all", "-j", jobs[name], "-o", "%T"))
		})
	}
	m.run(t, "bob", "scancel", jobs["cancel"])
	m.run(t, "root", "scontrol", "suspend", jobs["gres"])
	m.run(t, "root", "scontrol", "update", "JobId="+jobs["held"], "AdminComment=an-administrator's", "Priority=0")
	if _, err := m.try("root", "scontrol", "update", "JobId="+jobs["held"], "Extra=more"); err != nil {
		t.Logf("not in %s: a job's Extra", m.release)
	}
	time.Sleep(6 * time.Second) // until the accounting daemon was told, and schedulers ran
}

var jobs map[string]string // their ids by name
