package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"schedrestd/bundled/ctld/process"
	"strconv"
	"sync/atomic"
	"testing"
)

var sleeps atomic.Int64

// UniqueSleep returns an argument for sleep(1) that no other test uses. A test
// can use this argument to find its own processes.
func UniqueSleep() string {
	return fmt.Sprintf("3600.%07d%03d", os.Getpid(), sleeps.Add(1))
}

// SleepProcesses returns the processes that run sleep(1) with the given
// argument.
func SleepProcesses(t *testing.T, sleep string) []process.Stat {
	t.Helper()
	processes, err := process.All()
	Must(t, err)
	var found []process.Stat
	for _, st := range processes {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(st.PID) + "/cmdline")
		if err == nil && string(line) == "sleep\x00"+sleep+"\x00" {
			found = append(found, st)
		}
	}
	return found
}

// CountSleeps returns the number of processes that run sleep(1) with the given
// argument.
func CountSleeps(t *testing.T, sleep string) int { return len(SleepProcesses(t, sleep)) }

// Schedctl runs schedctl on the lab's controller and returns its output.
func (l *Lab) Schedctl(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(Bin, "schedctl"), append([]string{"-f", l.Conf()}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("schedctl %v: %v\n%s%s", args, err, out.Bytes(), errOut.Bytes())
	}
	return out.String()
}

// Output returns what a job wrote.
func (l *Lab) Output(t *testing.T, id int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.Work, fmt.Sprintf("sched-%d.out", id)))
	Must(t, err)
	return string(text)
}
