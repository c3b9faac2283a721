package privsep

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"schedrestd/ipc"
)

// anchorOf is the first process of the workers' PID namespace.
func anchorOf(t *testing.T, parent int) int {
	t.Helper()
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		line, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if bytes.HasSuffix(line, []byte(ipc.AnchorMode+"\x00")) && status(t, pid, "PPid") == strconv.Itoa(parent) {
			return pid
		}
	}
	t.Fatal("there is no first process")
	return 0
}

// TestAnchorIsNobody: the first process has no privileges, and can't be signalled by workers.
func TestAnchorIsNobody(t *testing.T) {
	needRoot(t)
	g := serve(t, nil, Config{User: "nobody", Group: "nogroup"})
	pid := anchorOf(t, g.cmd.Process.Pid)
	for name, want := range map[string]string{"CapPrm": "0000000000000000", "NoNewPrivs": "1", "Groups": ""} {
		if got := status(t, pid, name); got != want {
			t.Errorf("its %s is %q", name, got)
		}
	}
	if uid := status(t, pid, "Uid"); uid == status(t, g.workerPID(), "Uid") || uid == "0 0 0 0" {
		t.Errorf("it is %s", uid)
	}
	if a, b := namespace(t, pid, "pid"), namespace(t, g.workerPID(), "pid"); a != b || a == namespace(t, g.cmd.Process.Pid, "pid") {
		t.Errorf("it is in PID namespace %s, the worker in %s", a, b)
	}
}

// TestAnchorGone: with the first process all workers are gone, and the gateway ends to be started again.
func TestAnchorGone(t *testing.T) {
	needRoot(t)
	g := serve(t, nil, Config{User: "nobody", Group: "nogroup"})
	worker := g.workerPID()
	must(t, syscall.Kill(anchorOf(t, g.cmd.Process.Pid), syscall.SIGKILL))
	g.await("the first process of the workers' PID namespace is gone, and with it all of them: the gateway ends, to be started again", nil)
	await(t, "its worker is gone, too", func() bool { return syscall.Kill(worker, 0) != nil })
	if err := g.cmd.Wait(); err == nil {
		t.Error("the gateway ended as if all were well")
	}
}

// TestParentGone: when the parent is killed, nothing of it stays.
func TestParentGone(t *testing.T) {
	needRoot(t)
	g := serve(t, nil, Config{User: "nobody", Group: "nogroup"})
	worker, anchor := g.workerPID(), anchorOf(t, g.cmd.Process.Pid)
	must(t, syscall.Kill(worker, syscall.SIGSTOP)) // it can't notice by itself
	must(t, g.cmd.Process.Kill())
	for _, pid := range []int{worker, anchor} {
		await(t, fmt.Sprintf("process %d is gone with the parent", pid), func() bool { return syscall.Kill(pid, 0) != nil })
	}
}
