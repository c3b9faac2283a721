package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	const fields = " S 7 70 71 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 999 1000 3 18446744073709551615 1 1"
	tests := []struct {
		name, line string
		want       Stat
		bad        bool
	}{
		{"plain", "42 (sh)" + fields, Stat{42, 'S', 7, 71, 999, 3 * pageSize}, false},
		{"name that imitates the rest", "42 (x) Z 1 1 1 (y)" + fields, Stat{42, 'S', 7, 71, 999, 3 * pageSize}, false},
		{"newline in the name", "42 (a\nb)" + fields, Stat{42, 'S', 7, 71, 999, 3 * pageSize}, false},
		{"empty", "", Stat{}, true},
		{"cut", "42 (sh) S 7", Stat{}, true},
		{"no number", "x (sh)" + fields, Stat{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseStat([]byte(tt.line))
			if (err != nil) != tt.bad {
				t.Fatalf("error %v, want one: %v", err, tt.bad)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (sh) S 7 70 71 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 999 1000 3 1 1 1"))
	f.Fuzz(func(t *testing.T, b []byte) { parseStat(b) })
}

func TestDescendantsSurvivesACircle(t *testing.T) {
	all := []Stat{{PID: 1}, {PID: 2, Parent: 1}, {PID: 3, Parent: 4}, {PID: 4, Parent: 3}, {PID: 5, Parent: 2}}
	var got []int
	for _, st := range append(descendants(all, 1), descendants(all, 3)...) {
		got = append(got, st.PID)
	}
	if diff := cmp.Diff([]int{2, 5, 4}, got); diff != "" {
		t.Error(diff)
	}
}

func TestIdentityIsOfOneProcess(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	id, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}

	later, otherBoot := id, id
	later.Start++
	otherBoot.BootID = "00000000-0000-0000-0000-000000000000"
	for name, id := range map[string]Identity{"other start": later, "other boot": otherBoot} {
		if _, err := id.Open(); !errors.Is(err, ErrGone) {
			t.Errorf("%s: error %v, want ErrGone", name, err)
		}
	}

	h, err := id.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("wait with a cancelled context: %v", err)
	}
	if err := h.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if err := h.Signal(syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signal after the end: %v, want ErrGone", err)
	}
	if _, err := id.Open(); !errors.Is(err, ErrGone) {
		t.Errorf("open after the end: %v, want ErrGone", err)
	}
}

func TestDescendantsAreFoundAndSignalled(t *testing.T) {
	// The shell starts a child in another session. Both are descendants of this
	// process.
	cmd := exec.Command("sh", "-c", "setsid sleep 60 & echo; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Read(make([]byte, 1))
	list, err := Descendants(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Parent != cmd.Process.Pid {
		t.Fatalf("descendants %+v, want one child of %d", list, cmd.Process.Pid)
	}
	if self, _ := Descendants(os.Getpid()); len(self) < 2 {
		t.Errorf("the child and its child are below this process, got %+v", self)
	}
	if n := Resident(list, true); n == 0 || n > 1<<30 {
		t.Errorf("resident %d bytes", n)
	}
	if n, err := SignalAll(list, syscall.SIGTERM); n != 1 || err != nil {
		t.Errorf("reached %d, %v", n, err)
	}
	if err := cmd.Wait(); err != nil { // the shell exits because its child did
		t.Error(err)
	}
}

func TestStringIsShort(t *testing.T) {
	got := Identity{BootID: "abcd-1", PID: 7, Start: 9}.String()
	if !strings.Contains(got, "7") || strings.Contains(got, "abcd-1") {
		t.Error(got)
	}
}
