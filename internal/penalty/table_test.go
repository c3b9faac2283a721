package penalty

import (
	"testing"
	"time"
)

var rules = Rules{Cost: [Kinds]time.Duration{Auth: time.Second, Malformed: time.Second, Crash: 15 * time.Second}, Threshold: 30 * time.Second}

var noon = time.Unix(1_700_000_000, 0)

func at(d time.Duration) time.Time { return noon.Add(d) }

func TestMistakesCostNothing(t *testing.T) {
	table := New[string](Row{Size: 100}, rules)
	for i := range 30 {
		if wait, _ := table.Offend(noon, "portal", Auth); wait != 0 {
			t.Fatalf("offence %d blocks the source for %s", i, wait)
		}
	}
	if wait, newBlock := table.Offend(noon, "portal", Auth); wait != time.Second || !newBlock {
		t.Errorf("mistake 31: %s, %t", wait, newBlock)
	}
	if wait := table.BlockedFor(noon, "other"); wait != 0 {
		t.Errorf("another source is blocked for %s", wait)
	}
	for i := range 1000 { // one per second, continuously
		if wait, _ := table.Offend(at(time.Duration(i)*time.Second), "slow", Auth); wait != 0 {
			t.Fatalf("one offence a second blocks the source for %s", wait)
		}
	}
}

// TestPausesGrowAndEnd checks the blocks of a source, such as a web portal. For
// a minute, the source sends 50 requests per second with an expired token. The
// blocks must grow to ten seconds. When the requests stop, the debt must
// expire.
func TestPausesGrowAndEnd(t *testing.T) {
	table := New[string](Row{Size: 100}, rules)
	var pauses []time.Duration
	end := time.Minute
	for d := time.Duration(0); d < end; d += 20 * time.Millisecond {
		if table.BlockedFor(at(d), "portal") > 0 {
			continue // the answer is 429, which costs nothing
		}
		if wait, newBlock := table.Offend(at(d), "portal", Auth); newBlock {
			pauses = append(pauses, wait)
		}
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		if i >= len(pauses) || pauses[i] != want*time.Second {
			t.Fatalf("the blocks are %v", pauses)
		}
	}
	if wait := table.BlockedFor(at(end), "portal"); wait > 10*time.Second {
		t.Errorf("after the last offence it is blocked for %s", wait)
	}
	if wait := table.BlockedFor(at(end+10*time.Second), "portal"); wait != 0 {
		t.Errorf("10 s after the last offence it is blocked for %s", wait)
	}
	later := at(end + 10*time.Second + rules.Threshold)
	if wait, _ := table.Offend(later, "portal", Auth); wait != 0 {
		t.Errorf("the debt is not forgotten: it is blocked for %s", wait)
	}
}

func TestOffencesDuringAPauseCostNothing(t *testing.T) {
	table := New[string](Row{Size: 100}, rules)
	for range 31 {
		table.Offend(noon, "portal", Auth)
	}
	for range 1000 {
		if wait, newBlock := table.Offend(at(500*time.Millisecond), "portal", Auth); newBlock || wait != 500*time.Millisecond {
			t.Fatalf("%s, %t", wait, newBlock)
		}
	}
}

func TestCrashesCostMore(t *testing.T) {
	table := New[string](Row{Size: 100}, rules)
	for range 2 {
		if wait, _ := table.Offend(noon, "fuzzer", Crash); wait != 0 {
			t.Fatalf("the source is blocked for %s", wait)
		}
	}
	now := noon
	for i, want := range []time.Duration{15, 30, 60, 120, 150, 150} {
		wait, _ := table.Offend(now, "fuzzer", Crash)
		if wait != want*time.Second {
			t.Fatalf("block %d lasts %s", i, wait)
		}
		now = now.Add(wait)
	}
}

// TestKinds checks that debts of different kinds do not add up, and that a debt
// of each kind blocks its source.
func TestKinds(t *testing.T) {
	type step struct {
		at    time.Duration
		kind  Kind
		times int
		want  time.Duration // how long the source is blocked afterwards
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"each below its threshold", []step{{0, Auth, 30, 0}, {0, Malformed, 30, 0}, {0, Crash, 2, 0}}},
		{"one above its threshold", []step{{0, Auth, 30, 0}, {0, Malformed, 31, time.Second}}},
		{"a block for one kind does not affect the other", []step{
			{0, Auth, 31, time.Second}, {time.Second, Malformed, 30, 0}, {time.Second, Malformed, 1, time.Second}}},
		{"blocks do not lengthen each other", []step{{0, Crash, 3, 15 * time.Second}, {15 * time.Second, Auth, 31, time.Second}}},
		{"the longest counts", []step{{0, Auth, 31, time.Second}, {0, Crash, 3, 15 * time.Second}, {2 * time.Second, Auth, 1, 13 * time.Second}}},
	} {
		table := New[string](Row{Size: 100}, rules)
		for i, s := range tt.steps {
			for range s.times {
				table.Offend(at(s.at), "portal", s.kind)
			}
			if got := table.BlockedFor(at(s.at), "portal"); got != s.want {
				t.Errorf("%s: after step %d it is blocked for %s, want %s", tt.name, i, got, s.want)
			}
		}
	}
}

// TestFull checks that an attacker with many addresses can't displace the debts
// of blocked sources.
func TestFull(t *testing.T) {
	table := New[int](Row{Size: 100}, rules)
	for range 31 {
		table.Offend(noon, -1, Auth)
	}
	for i := range 10_000 {
		table.Offend(at(time.Millisecond), i, Auth)
	}
	if n, evicted := table.Len(); n != 100 || evicted != 9_901 {
		t.Errorf("%d sources, %d were evicted", n, evicted)
	}
	if table.BlockedFor(at(2*time.Millisecond), -1) == 0 {
		t.Error("the blocked source was forgotten")
	}
	table.Offend(at(time.Hour), 1, Auth)
	if _, evicted := table.Len(); evicted > 9_902 {
		t.Errorf("%d debts were evicted, although all had expired", evicted)
	}
}

func TestOff(t *testing.T) {
	table := New[string](Row{Size: 100}, Rules{})
	for range 1000 {
		if wait, _ := table.Offend(noon, "portal", Crash); wait != 0 {
			t.Fatal(wait)
		}
	}
	if table.BlockedFor(noon, "portal") != 0 {
		t.Error("it waits")
	}
}

// TestDisabled checks that nothing blocks a source without a threshold or a cost.
func TestDisabled(t *testing.T) {
	for _, none := range []Rules{{Cost: rules.Cost}, {Threshold: time.Second}, {}} {
		table := New[string](Row{Size: 100}, none)
		for kind := range Kinds {
			for range 100 {
				table.Offend(noon, "guesser", kind)
			}
		}
		if debts, _ := table.Len(); debts != 0 || table.BlockedFor(noon, "guesser") != 0 {
			t.Errorf("%+v: %d debts, blocked for %s", none, debts, table.BlockedFor(noon, "guesser"))
		}
	}
}
