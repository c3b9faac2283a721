package thread

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func init() { runtime.LockOSThread() } // the process's first thread never ends: no test runs on it

// TestStart checks that a child outlives the thread of the goroutine that had
// it started.
func TestStart(t *testing.T) {
	cmd := exec.Command("/bin/cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	starter := make(chan int)
	go func() {
		runtime.LockOSThread()
		err = Start(cmd)
		starter <- syscall.Gettid()
	}()
	thread := fmt.Sprintf("/proc/self/task/%d", <-starter)
	if err != nil {
		t.Fatal(err)
	}
	for _, there := os.Stat(thread); there == nil; _, there = os.Stat(thread) {
		time.Sleep(time.Millisecond)
	}
	in.Close() // the child exits
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
