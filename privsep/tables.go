package privsep

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"schedrestd/become"
	"schedrestd/become/stage"
	"schedrestd/errs"
	"schedrestd/security"
)

// tablesUser is who prints documents when root asks: nobody, who serves nobody either. It gets no
// descriptor but its pipes.
const tablesUser = become.Overflow

// Tables runs the worker's program with args to print something that only it has the tables for,
// and copies that to out. program as in Config. Nothing is served and no identity is judged: as
// root the program runs as nobody, otherwise as the caller.
func Tables(program string, args []string, out io.Writer) error {
	root := syscall.Geteuid() == 0
	who := service{Identity: security.Identity{UID: tablesUser, GID: tablesUser}, root: root}
	if err := security.CloseInherited(); err != nil {
		return err
	}
	f, err := openProgram(program, who)
	if err != nil {
		return err
	}
	defer f.Close()
	var complaint limited
	copied := &copied{to: out}
	cmd := &exec.Cmd{
		Path:   fmt.Sprintf("/proc/self/fd/%d", f.Fd()),
		Args:   append([]string{programName}, args...),
		Env:    environ(runtime.NumCPU()),
		Dir:    "/",
		Stdout: copied, // by a pipe, even to a file: the program may write none
		Stderr: &complaint,
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:    true,
			Pdeathsig: syscall.SIGKILL,
		},
	}
	if root {
		cmd.ExtraFiles = []*os.File{f}
		target := stage.Target{UID: who.UID, GID: who.GID, DeathSignal: syscall.SIGKILL, Path: stage.File(3), Argv: cmd.Args, Env: cmd.Env}
		cmd.Path = stage.Program
		cmd.Args, cmd.Env = target.Command()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: no_new_privs stays with it, and the death signal
		err := security.NoNewPrivsThread()
		if err == nil {
			err = cmd.Run()
		}
		done <- err
	}()
	err = <-done
	if copied.err != nil {
		return errs.New(errs.Unavailable, "print: %v", copied.err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return errs.New(errs.Internal, "%s %s: %s: %s", programName, args[0], exit, printable(strings.TrimSpace(complaint.String())))
	}
	return errs.Wrap(err, errs.Internal, "run %s", f.Name())
}

// copied passes on what is written to it, and remembers the first failure: after it the program
// knows of a broken pipe alone.
type copied struct {
	to  io.Writer
	err error
}

// Write passes p on.
func (c *copied) Write(p []byte) (n int, err error) {
	n, err = c.to.Write(p)
	c.err = cmp.Or(c.err, err)
	return n, err
}

// limited keeps the beginning of what is written to it.
type limited struct{ bytes.Buffer }

// Write keeps what fits, and takes the rest.
func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), max(0, maxLine-l.Len()))])
	return len(p), nil
}
