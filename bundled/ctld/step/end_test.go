package step

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/bundled/ctld/process"
)

func TestCancelEndsTheWholeTree(t *testing.T) {
	b := newFixture(t)
	// The inner shell is in another session, ignores SIGTERM, and has lost its
	// parent.
	spec := b.spec(`(setsid sh -c 'trap "" TERM; echo $$ >inner; while :; do sleep 1; done' &)
		trap 'echo told >told; exit 5' TERM; while :; do sleep 0.1; done`)
	s := b.start(spec)
	inner := b.pid("inner")
	if err := s.Cancel(); err != nil {
		t.Fatal(err)
	}
	want := Outcome{Format: 1, State: Cancelled, Status: 5 << 8}
	if diff := cmp.Diff(want, b.finish(s, spec)); diff != "" {
		t.Error(diff)
	}
	if alive(inner) {
		t.Error("the child with its own session still runs")
	}
	if b.read("told") != "told\n" {
		t.Error("the script received no signal")
	}
}

func TestTimeLimit(t *testing.T) {
	b := newFixture(t)
	for limit, tried := 200*time.Millisecond, false; !tried; limit *= 2 { // on a busy machine the job may be ended before it has a child
		spec := b.spec("setsid sleep 60 & echo $! >child; exec sleep 60")
		spec.TimeLimit = limit
		want := Outcome{Format: 1, State: Timeout, Status: 15}
		if diff := cmp.Diff(want, b.run(spec)); diff != "" {
			t.Fatal(diff)
		}
		child, _ := os.ReadFile(filepath.Join(b.work, "child"))
		tried = strings.HasSuffix(string(child), "\n")
	}
	if alive(b.pid("child")) {
		t.Error("the child lives on")
	}
}

func TestStoppedJobCanBeEnded(t *testing.T) {
	b := newFixture(t)
	spec := b.spec("echo $$ >main; kill -STOP $$; sleep 60")
	s := b.start(spec)
	main := b.pid("main")
	await(t, "the job stops itself", func() bool { st, _ := process.ReadStat(main); return st.State == 'T' })
	s.Cancel()
	if o := b.finish(s, spec); o.State != Cancelled || o.Status != 15 {
		t.Errorf("%+v", o)
	}
}

func TestMemoryLimitBySampling(t *testing.T) {
	b := newFixture(t)
	// The memory is used by a child in another session.
	spec := b.spec(`setsid sh -c 'x=$(head -c 60000000 /dev/zero | tr "\0" x); sleep 60' & wait`)
	spec.Memory = 30 << 20
	if o := b.run(spec); o.State != OutOfMemory {
		t.Errorf("%+v", o)
	}
	spec = b.spec("sleep 1")
	spec.Memory = 30 << 20
	if o := b.run(spec); o.State != Completed {
		t.Errorf("well below the limit: %+v", o)
	}
}

func TestSignalsAreForwarded(t *testing.T) {
	b := newFixture(t)
	spec := b.spec(`for s in HUP INT USR1 PWR; do trap "echo $s >>got" $s; done; echo $$ >main; while [ ! -e quit ]; do sleep 0.05; done`)
	s := b.start(spec)
	b.pid("main")
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGINT, syscall.SIGPWR} {
		if err := s.Signal(sig); err != nil {
			t.Fatal(err)
		}
		await(t, sig.String()+" arrives", func() bool {
			text, _ := os.ReadFile(filepath.Join(b.work, "got"))
			return strings.Contains(string(text), map[syscall.Signal]string{1: "HUP", 2: "INT", 10: "USR1", 30: "PWR"}[sig])
		})
	}
	if err := s.Signal(0); err == nil {
		t.Error("signal 0 was accepted")
	}
	os.WriteFile(filepath.Join(b.work, "quit"), nil, 0o644)
	if o := b.finish(s, spec); o.State != Completed {
		t.Errorf("%+v", o)
	}
}

func TestOnlyOneStepClaims(t *testing.T) {
	b := newFixture(t)
	spec := b.spec("echo $$ >>runs; sleep 0.2")
	var wg sync.WaitGroup
	var mu sync.Mutex
	var started, rejected int
	for range 8 {
		wg.Go(func() {
			s, err := b.program.Start(spec, b.log)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				started++
				s.Wait(t.Context())
				s.Close()
			case errors.Is(err, ErrClaimed):
				rejected++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if started != 1 || rejected != 7 || strings.Count(b.read("runs"), "\n") != 1 {
		t.Errorf("%d won, %d taken, runs: %q", started, rejected, b.read("runs"))
	}
	if err := Withdraw(spec.Home); !errors.Is(err, ErrClaimed) {
		t.Errorf("withdrawn after the job ran: %v", err)
	}
}

func TestWithdrawnJobNeverStarts(t *testing.T) {
	b := newFixture(t)
	withdrawn, retired := b.spec("echo ran >ran"), b.spec("true")
	if err := Withdraw(withdrawn.Home); err != nil {
		t.Fatal(err)
	}
	b.run(retired)
	if err := RemoveHome(retired.Home); err != nil {
		t.Fatal(err)
	}
	retired.Script = withdrawn.Script
	for _, spec := range []*Spec{withdrawn, retired} {
		if _, err := b.program.Start(spec, b.log); !errors.Is(err, ErrClaimed) {
			t.Errorf("error %v, want ErrTaken", err)
		}
	}
	if _, err := os.Stat(filepath.Join(b.work, "ran")); err == nil {
		t.Error("it ran")
	}
	if entries, _ := os.ReadDir(filepath.Dir(retired.Home)); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// TestDeadStepLeavesNothingRunning kills a step. It checks that the script is
// killed, too, and that KillOrphans finds and kills the script's children.
func TestDeadStepLeavesNothingRunning(t *testing.T) {
	b := newFixture(t)
	spec := b.spec("setsid sleep 60 & echo $! >child; echo $$ >main; sleep 60")
	s := b.start(spec)
	child, main := b.pid("child"), b.pid("main")
	if err := s.handle.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := ReadOutcome(spec.Home); ok {
		t.Error("there is an outcome")
	}
	await(t, "the script dies with its step", func() bool { return !alive(main) })
	if !alive(child) {
		t.Error("the child is dead already: nothing is shown")
	}
	c, ok, err := ReadClaim(spec.Home)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := KillOrphans(c, uint32(os.Getuid())); err != nil {
		t.Error(err)
	}
	if alive(child) {
		t.Error("the child lives on")
	}
	if _, err := Adopt(c); !errors.Is(err, process.ErrGone) {
		t.Errorf("adopt: %v", err)
	}
}

func TestAdoptedStepIsCancelled(t *testing.T) {
	b := newFixture(t)
	spec := b.spec("sleep 60")
	started := b.start(spec)
	c, _, err := ReadClaim(spec.Home)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Adopt(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Cancel()
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o := b.finish(started, spec); o.State != Cancelled {
		t.Errorf("%+v", o)
	}
}
