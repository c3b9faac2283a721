package ctld

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/server"
)

// newClient serves c on a UNIX socket, in the protocol version v only. It
// returns a client for that socket.
func newClient(t *testing.T, c *Controller, v codec.Version) *client.Client {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(c.cfg.StateDir, "rpc"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server.Server{Handlers: c.Handlers(), Log: c.log, Oldest: v, Newest: v}
	go s.Serve(ln)
	t.Cleanup(func() { s.Shutdown(t.Context()) })
	return client.New(client.Config{Controllers: []client.Address{{Name: "test", Network: "unix", Address: ln.Addr().String()}}})
}

func TestRequestsAtEveryVersion(t *testing.T) {
	for _, v := range []codec.Version{codec.V2205, codec.V2411, codec.Newest} {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			c, _ := controller(t, Config{Node: "here", Version: "1.2.3"})
			rpc, ctx, cred := newClient(t, c, v), t.Context(), model.Credential{}

			if err := rpc.Verify(ctx, cred); err != nil {
				t.Error("ping:", err)
			}
			node, _, err := rpc.Node(ctx, cred, "here", model.Query{})
			if err != nil {
				t.Fatal("node:", err)
			}
			if int(node.CPUs) != c.facts.CPUs || node.Memory != c.facts.Memory || node.State != model.NodeIdle ||
				node.BootTime != model.At(c.facts.BootTime) || node.OS != c.facts.OS || !node.CPULoad.Set || node.Version != "1.2.3" {
				t.Errorf("node %+v", node)
			}
			if _, _, err := rpc.Node(ctx, cred, "elsewhere", model.Query{}); errs.KindOf(err) != errs.NotFound && errs.KindOf(err) != errs.Invalid {
				t.Error("unknown node:", err)
			}
			var names []string
			if _, err := rpc.Partitions(ctx, cred, model.Query{}, func(p *model.Partition) error {
				names = append(names, p.Name+" "+p.Nodes)
				return nil
			}); err != nil || len(names) != 1 || names[0] != "batch here" {
				t.Error("partitions:", names, err)
			}

			d := desc(t.TempDir(), "sleep 60")
			d.TimeLimit = model.Some[uint32](9000)
			answer, err := rpc.Submit(ctx, cred, d)
			if err != nil {
				t.Fatal("submit:", err)
			}
			id := answer.StepID.JobID
			awaitState(t, c, id, model.JobRunning)
			var j model.Job
			if _, err := rpc.Job(ctx, cred, id, model.Query{}, func(one *model.Job) error { j = *one; return nil }); err != nil {
				t.Fatal("job:", err)
			}
			if j.Name != "test" || j.Nodes != "here" || j.State != model.JobRunning || j.NumCPUs != 1 ||
				j.TimeLimit != model.Some[uint32](9000) || j.EndTime != j.StartTime+9000*60 || j.UserID != ownUser.UID {
				t.Errorf("job %+v", j)
			}
			if err := rpc.Kill(ctx, cred, "1", 9, 0); err != nil {
				t.Error("kill:", err)
			}
			awaitState(t, c, id, model.JobCancelled)
			for text, want := range map[string]errs.Kind{"1": errs.Conflict, "2": errs.NotFound, "1_2": errs.NotFound, "x": errs.NotFound} {
				if err := rpc.Kill(ctx, cred, text, 9, 0); errs.KindOf(err) != want {
					t.Errorf("kill of %q: %v", text, err)
				}
			}
			d.Script = ""
			if _, err := rpc.Submit(ctx, cred, d); err == nil || !strings.Contains(err.Error(), "script: missing") {
				t.Error("refused submission:", err)
			}
			n := 0
			if _, err := rpc.Jobs(ctx, cred, model.Query{}, func(*model.Job) error { n++; return nil }); n != 1 || err != nil {
				t.Error("jobs:", n, err)
			}
		})
	}
}

func TestSignalsToJobs(t *testing.T) {
	c, _ := controller(t, Config{})
	dir := t.TempDir()
	id := submit(t, c, desc(dir, `trap 'echo got >got; exit 0' USR1; touch ready; while :; do sleep 0.02; done`))
	held := desc(dir, "true")
	held.Priority = model.Some[uint32](0)
	heldID := submit(t, c, held)
	await(t, "the job is ready", func() bool { return exists(filepath.Join(dir, "ready")) })
	for _, sig := range []syscall.Signal{0, 10, 15} {
		if e, _ := errors.AsType[*errs.Error](c.signal(heldID, sig, false)); e == nil || e.Number != 2024 {
			t.Errorf("signal %d to a waiting job: %v", sig, e)
		}
	}
	if err := c.signal(id, 0, false); err != nil {
		t.Error(err)
	}
	if err := c.signal(id, 31, false); errs.KindOf(err) != errs.Invalid {
		t.Errorf("signal 31: %v", err)
	}
	if err := c.signal(id, 10, false); err != nil {
		t.Error(err)
	}
	awaitState(t, c, id, model.JobComplete)
}

// TestSignalToScript checks that a signal with the flag KillBatchJob reaches the
// job's script but not the processes that it has started, also as signal 9.
func TestSignalToScript(t *testing.T) {
	c, _ := controller(t, Config{})
	dir := t.TempDir()
	id := submit(t, c, desc(dir, `sh -c 'trap "touch child" USR1; touch ready; while :; do sleep 0.02; done' &
trap 'touch script' USR1; while :; do wait; done`))
	kill := func(signal uint16) {
		t.Helper()
		r := &server.Request{Identity: ownUser}
		if err := c.kill(r, id, signal, model.KillBatchJob, time.Now().Add(startTimeout)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the job is ready", func() bool { return exists(filepath.Join(dir, "ready")) })
	kill(10)
	await(t, "the script gets the signal", func() bool { return exists(filepath.Join(dir, "script")) })
	kill(9)
	if j := awaitState(t, c, id, model.JobFailed); j.ExitCode != 9 || exists(filepath.Join(dir, "child")) {
		t.Errorf("status %d, or a child got the signal", j.ExitCode)
	}
}

// known is a machine with two users.
type known struct{ System }

func (known) LookupUser(name string) (nss.User, error) {
	for uid := range uint32(2000) {
		if u, err := (known{}).LookupUID(uid); err == nil && u.Name == name {
			return u, nil
		}
	}
	return nss.User{}, errs.New(errs.NotFound, "no user")
}

func (known) LookupUID(uid uint32) (nss.User, error) {
	switch uid {
	case 0:
		return nss.User{Name: "root"}, nil
	case 1000, 1001, 1002:
		return nss.User{Name: map[uint32]string{1000: "ann", 1001: "bea", 1002: "sched"}[uid], UID: uid, GID: uid}, nil
	}
	return nss.User{}, errs.New(errs.NotFound, "no user")
}

func (known) Groups(u nss.User) ([]uint32, error) { return []uint32{u.GID, 50}, nil }

func TestReadMinutes(t *testing.T) {
	for text, want := range map[string]model.Opt[uint32]{
		"30": model.Some[uint32](30), "1:30": model.Some[uint32](2), "2:00:00": model.Some[uint32](120), "0:00:01": model.Some[uint32](1),
		"1-0": model.Some[uint32](1440), "1-2:30": model.Some[uint32](1590), "7-00:00:00": model.Some[uint32](10080),
		"UNLIMITED": model.Infinite[uint32](), "infinite": model.Infinite[uint32](),
	} {
		if got, err := readMinutes(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "1-", "1:2:3:4", "1-2:3:4:5", "99999999999", "65536-0", "2147483647:0:0"} {
		if got, err := readMinutes(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestReadPartitions(t *testing.T) {
	line := func(pairs ...string) conf.Line {
		l := conf.Line{File: "f", Number: 7}
		for i := 0; i < len(pairs); i += 2 {
			l.Pairs = append(l.Pairs, conf.Pair{Key: pairs[i], Value: pairs[i+1]})
		}
		return l
	}
	got, err := readPartitions([]conf.Line{
		line("PartitionName", "a", "Nodes", "ALL"),
		line("PartitionName", "b", "Default", "yes", "MaxTime", "1:00:00", "DefaultTime", "5"),
		line("PartitionName", "c", "State", "DOWN"),
	})
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := defaultPartition(), defaultPartition(), defaultPartition()
	a.Name, a.Flags = "a", 0
	b.Name, b.MaxTime, b.DefaultTime = "b", model.Some[uint32](60), model.Some[uint32](5)
	c.Name, c.Flags, c.StateUp = "c", 0, 0
	if diff := cmp.Diff([]model.Partition{a, b, c}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := readPartitions([]conf.Line{line("PartitionName", "a", "MaxTime", "soon")}); err == nil || !strings.Contains(err.Error(), "f:7") {
		t.Errorf("error %v", err)
	}
}
