package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"schedrestd/internal/errs"
	"schedrestd/internal/excerpt"
)

const workerName = "schedrestd-worker"

// runTables runs the worker's program with args and copies the program's output
// to out. Its callers need output that is based on the tables of the API. This
// process does not have these tables. The program runs with this process's
// identity, and its only descriptors are pipes.
func (o *options) runTables(args []string, out io.Writer) error {
	f, err := o.host.OpenWorker()
	if err != nil {
		return err
	}
	defer f.Close()
	stderr := excerpt.Buffer{Max: maxStderr}
	stdout := &errWriter{w: out}
	cmd := &exec.Cmd{
		Path:   "/proc/self/fd/" + strconv.Itoa(int(f.Fd())),
		Args:   append([]string{workerName}, args...),
		Env:    []string{fmt.Sprintf("GOMAXPROCS=%d", runtime.NumCPU()), "GODEBUG=containermaxprocs=0,updatemaxprocs=0"},
		Dir:    "/",
		Stdout: stdout, // through a pipe even if out is a file: the program is not permitted to write to files
		Stderr: &stderr,
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:    true,
			Pdeathsig: syscall.SIGKILL,
		},
	}
	runtime.LockOSThread() // the death signal depends on the thread
	err = cmd.Run()
	runtime.UnlockOSThread()
	if stdout.err != nil {
		return errs.New(errs.Unavailable, "write the output: %v", stdout.err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return errs.New(errs.Internal, "%s %s: %s: %q", workerName, args[0], exit, strings.TrimSpace(stderr.String()))
	}
	return errs.Wrap(err, errs.Internal, "run %s", workerName)
}

// An errWriter forwards its input and stores the first error. The program that
// writes the input learns only that its pipe is broken, so it can't report the
// error.
type errWriter struct {
	w   io.Writer
	err error
}

func (c *errWriter) Write(p []byte) (n int, err error) {
	n, err = c.w.Write(p)
	c.err = cmp.Or(c.err, err)
	return n, err
}

const maxStderr = 4 << 10
