package site

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"schedrestd/bundled/demo/thread"
	"schedrestd/internal/errs"
)

const (
	startTimeout   = time.Minute           // until a daemon answers for the first time
	stopTimeout    = 30 * time.Second      // until a daemon exits after SIGTERM
	attemptTimeout = 20 * time.Second      // for one attempt, which a busy machine delays
	retryInterval  = 10 * time.Millisecond // between two attempts
)

// Program is a daemon to start.
type Program struct {
	Name       string // used in messages
	Path       string
	Args       []string
	Env        []string
	Log        string              // path of its log; output is appended
	Credential *syscall.Credential // nil: same as the caller
}

// Daemon is a Part that was started.
type Daemon struct {
	Part
	cmd  *exec.Cmd
	done chan struct{} // closed when the daemon has exited and err is set
	err  error
}

// ExitedError is the error for a daemon that exited without being asked to.
type ExitedError struct{ Daemon *Daemon }

func (d *ExitedError) Error() string {
	status := "exit status 0"
	if d.Daemon.err != nil {
		status = d.Daemon.err.Error()
	}
	return fmt.Sprintf("%s has ended (%s)", d.Daemon.Name, status)
}

// Start starts the daemon p. The kernel kills the daemon when this process
// exits.
func Start(p Part) (*Daemon, error) {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	d := &Daemon{Part: p, cmd: exec.Command(p.Path, p.Args...), done: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.Dir = "/"
	d.cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, p.Env...)
	// The daemon has a process group of its own, so that Ctrl-C in the terminal
	// does not reach it. Instead, the demo stops the daemons one by one.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: p.Credential}
	if err := thread.Start(d.cmd); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "start %s", p.Name)
	}
	go func() {
		d.err = d.cmd.Wait()
		close(d.done)
	}()
	return d, nil
}

// PID returns the daemon's process id.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Done returns a channel that is closed when the daemon has exited.
func (d *Daemon) Done() <-chan struct{} { return d.done }

// WaitReady waits until the daemon answers for the first time.
func (d *Daemon) WaitReady(ctx context.Context) error {
	timeout := time.After(startTimeout)
	for {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := d.Check(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.done:
			return &ExitedError{d}
		case <-timeout:
			return fmt.Errorf("%s does not answer: %w", d.Name, err)
		case <-time.After(retryInterval):
		}
	}
}

// Stop asks the daemon to exit, and kills it after stopTimeout. It returns the
// daemon's exit status as an error, or nil if the status is 0.
func (d *Daemon) Stop() error {
	d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.done:
	case <-time.After(stopTimeout):
		d.Kill()
	}
	return d.err
}

// Kill kills the daemon like kill -9.
func (d *Daemon) Kill() {
	d.cmd.Process.Kill()
	<-d.done
}

// LastLines returns at most n lines from the end of the daemon's log.
func (d *Daemon) LastLines(n int) []string {
	text, err := os.ReadFile(d.Log)
	if err != nil || len(text) == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return lines[max(0, len(lines)-n):]
}
