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

func init() { runtime.LockOSThread() } // the first thread of the process can't exit, so no test may run on it

// TestStart calls Start in a goroutine. It checks that the child outlives the
// goroutine's thread.
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
	for _, statErr := os.Stat(thread); statErr == nil; _, statErr = os.Stat(thread) {
		time.Sleep(time.Millisecond)
	}
	in.Close() // makes the child exit
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
