package privsep

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
)

// TestLostWorkersAreLimited: users whose workers can't be started, as at their limit of processes, or who
// kill them, don't fill the disk with lines about it; each is counted.
func TestLostWorkersAreLimited(t *testing.T) {
	program, err := os.Open(os.DevNull) // nobody can execute it
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	s, err := spawn.New(Config{}.spawnOptions(service{}, program, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	const users = 300
	for name, switches := range map[string]ipc.Switches{
		"worker_per_connection": {WorkerPerConnection: true},
		"become_user":           {BecomeUser: true},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(syncBuffer)
			c := Config{Connections: users, Identities: users, Workers: 1, Threads: 1, HandLimit: patience, Silence: patience,
				Switches: switches, Log: slog.New(slog.NewTextHandler(log, nil))}
			unresolved := func(ipc.Message, ...int) error { return errors.New("there is no resolver") }
			m := newMeans(c, &makers{names: newNamedBy(t, unresolved)})
			m.spawner = s
			defer m.loop.stop()
			h := newDispatcher(c, m, nil)
			m.slots.admit = func(*connection) {}
			switch h := h.(type) {
			case *perConnection:
				h.gen = newGeneration(c)
			case *identities:
				h.gen = newGeneration(c)
			}
			for uid := range uint32(users) {
				one, client := accepted(t, m.slots)
				one.UID, one.GID, one.Vouched = 31000+uid, 31000, true
				m.sync(func() { h.take(one) })
				turnedAway(t, client)
			}
			m.sync(m.pools.close)
			<-m.pools.over
			if n := strings.Count(log.String(), "a worker can't be started"); n < 50 || n > 200 || m.pools.lost.n < users {
				t.Errorf("%d lines about %d", n, m.pools.lost.n)
			}
		})
	}
}

// TestRoutineIsLimited: what happens to every worker is told as often as its user has it happen, too.
func TestRoutineIsLimited(t *testing.T) {
	p, log := idle(t, patience)
	p.routine = newLimitedCount()
	for range 1000 {
		p.mention("worker is ready")
	}
	if n := strings.Count(log.String(), "worker is ready"); n < 50 || n > 500 {
		t.Errorf("%d lines", n)
	}
}

// TestAlarmsAreNotLimited: whoever has workers end as often as he likes hides no alarm by it.
func TestAlarmsAreNotLimited(t *testing.T) {
	p, log := idle(t, patience)
	p.lost = newLimitedCount()
	for range 1000 {
		p.complain(slog.LevelError, "worker died")
		p.alarm(spawn.WorkerCaged)
	}
	if n := strings.Count(log.String(), spawn.WorkerCaged); n != 1000 {
		t.Errorf("%d of 1000 alarms", n)
	}
}

// TestCagedWorkerIsAnAlarm: a worker that dies of SIGSYS is told from one that crashed, and counted by itself.
func TestCagedWorkerIsAnAlarm(t *testing.T) {
	needCage(t)
	g := serve(t, plain(t), Config{})
	if what := g.attack("make a directory"); what != "dies of SIGSYS" {
		t.Errorf("it %s", what)
	}
	must(t, syscall.Kill(g.cmd.Process.Pid, syscall.SIGUSR1))
	r := g.await("counters", nil)
	// More than one when the client asked again: the connection was one that had been used.
	if workers, _ := r["workers"].(map[string]any); workers["caged"] == 0.0 || workers["died"] != 0.0 {
		t.Errorf("%v", r["workers"])
	}
}
