package step

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/ctld/cgroup"
	"schedrestd/bundled/ctld/failpoint"
	"schedrestd/bundled/ctld/process"
)

// The type watch is the first stage, which supervises the job. One goroutine
// does all of this work in one loop.
type watch struct {
	spec     *Spec
	specFile *os.File // the file from which spec was read
	log      *slog.Logger
	self     process.Identity
	group    *cgroup.Group // nil: no cgroup

	scriptPID    int        // the script's process
	startResult  chan error // receives one value: nil, or the error that prevented the start of the script
	signals      chan os.Signal
	sampler      *time.Ticker     // nil if the kernel enforces the memory limit, or if there is no limit
	limitReached <-chan time.Time // fires when the time limit is reached; nil if there is no limit
	killTimer    *time.Timer      // fires when killAll must run; started by stopJob
	killPause    time.Duration

	outcome  Outcome
	stopping bool // the processes were sent SIGTERM
	exited   bool // the script's process has ended
	warned   bool // a failure to signal a process has been logged; later ones are not logged
}

func watchMain() int {
	// The kernel must kill the script when this process exits, so start sets
	// Pdeathsig. The kernel sends that signal as soon as the thread that
	// started the script exits. So the script is started by the thread that
	// Main has locked. That thread exits only when the process exits.
	report := os.NewFile(reportFD, "report")
	w, claim, err := newWatch()
	_ = writeClaimReport(report, claim, err) // if the controller has exited, the next one reads the claim's file
	if err != nil {
		return 1
	}
	report.Close()
	failpoint.Here("claimed")
	w.run()
	failpoint.Here("ended")
	w.persistOutcome()
	return 0
}

// newWatch claims the job and prepares to run it. Once newWatch has returned
// without an error, the job counts as started.
func newWatch() (*watch, Claim, error) {
	w := &watch{startResult: make(chan error, 1), signals: make(chan os.Signal, 64), killTimer: time.NewTimer(time.Hour)}
	w.killTimer.Stop()
	// SIGHUP, SIGINT and SIGQUIT may come from a terminal or a service manager.
	// They are caught and dropped. If they were ignored, the second stage would
	// start with these signals ignored.
	catch := []os.Signal{limitChanged, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT}
	for sig := syscall.Signal(1); sig <= lastSignal; sig++ {
		catch = append(catch, signalOffset+sig)
	}
	signal.Notify(w.signals, catch...)
	// When a process of the job exits, its children become children of this
	// process, so this process can still find them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, Claim{}, fmt.Errorf("become subreaper: %w", err)
	}
	var err error
	w.specFile = os.NewFile(specFD, "spec")
	if w.spec, err = readSpec(w.specFile); err != nil {
		return nil, Claim{}, err
	}
	w.log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("job", w.spec.Job)
	if w.self, err = process.Self(); err != nil {
		return nil, Claim{}, err
	}
	w.makeGroup()
	w.outcome.Started = time.Now()
	c := Claim{Format: claimFormat, Step: w.self, Started: w.outcome.Started}
	if w.group != nil {
		c.Cgroup = w.group.Path
	}
	failpoint.Here("unclaimed")
	if err := writeClaim(w.spec.Home, c); err != nil {
		w.removeGroup()
		return nil, Claim{}, err
	}
	return w, c, nil
}

// run starts the script and returns when it and all of its descendants have
// exited.
func (w *watch) run() {
	w.setTimeLimit(w.spec.TimeLimit)
	w.dropOOMProtection()
	if err := w.start(); err != nil {
		w.startResult <- &faultError{err.Error()}
	}
	w.enableOOMProtection()
	w.specFile.Close()
	w.spec.Script, w.spec.Environment = "", nil // these values may take megabytes, and the job may run for hours
	sample := make(<-chan time.Time)
	if w.sampler != nil {
		sample = w.sampler.C
	}
	for w.reap() {
		select {
		case sig := <-w.signals:
			w.handleSignal(sig.(syscall.Signal))
		case <-w.limitReached:
			w.stopJob(Timeout, w.spec.KillWait)
		case <-sample:
			w.checkMemory()
		case <-w.killTimer.C:
			w.killAll()
		}
	}
	w.completeOutcome(w.awaitReport())
}

// reap waits for children that have exited, and reports whether any children
// are left. This process is a subreaper, so it becomes the parent of all
// orphans. If it has no children, all processes of the job have exited.
func (w *watch) reap() (remaining bool) {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &usage)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return false
		case pid == 0:
			if w.exited {
				w.stopJob(w.outcome.State, w.spec.KillWait) // the job ends with its script
			}
			return true
		}
		w.outcome.UserTime += time.Duration(usage.Utime.Nano())
		w.outcome.SystemTime += time.Duration(usage.Stime.Nano())
		w.outcome.MaxRSS = max(w.outcome.MaxRSS, uint64(usage.Maxrss)<<10)
		if pid == w.scriptPID && !w.exited {
			w.exited = true
			w.outcome.Status = uint32(status)
			if !w.stopping {
				w.outcome.State = exitState(status)
			}
		}
	}
}

// exitState returns the state of a job whose script ended before the job was
// stopped.
func exitState(status syscall.WaitStatus) State {
	if status.Exited() && status.ExitStatus() == 0 {
		return Completed
	}
	return Failed
}

func (w *watch) handleSignal(sig syscall.Signal) {
	switch {
	case sig == syscall.SIGTERM:
		w.stopJob(Cancelled, w.spec.KillWait)
	case sig == limitChanged:
		w.reloadTimeLimit()
	case sig > signalOffset:
		w.signalTree(sig - signalOffset)
	}
}

// setTimeLimit sets the time limit, which is measured from the start of the
// job.
func (w *watch) setTimeLimit(limit time.Duration) {
	w.limitReached = nil
	if limit > 0 {
		w.limitReached = time.After(time.Until(w.outcome.Started.Add(limit)))
	}
}

// reloadTimeLimit applies a new time limit that the controller has written.
func (w *watch) reloadTimeLimit() {
	var l Limit
	ok, err := readFile(filepath.Join(w.spec.Home, "limit"), &l)
	if err != nil || !ok {
		w.log.Error("reading new time limit failed", "error", err)
		return
	}
	w.setTimeLimit(l.TimeLimit)
}

// stopJob sends SIGTERM to the whole process tree. Processes that remain after
// the duration grace are sent SIGKILL. If grace is 0, all processes are sent
// SIGKILL at once. If the job is already being stopped, stopJob does nothing,
// so only the first cause is reported.
func (w *watch) stopJob(cause State, grace time.Duration) {
	if w.stopping {
		return
	}
	w.stopping = true
	w.outcome.State = cause
	if grace > 0 {
		w.signalTree(syscall.SIGTERM, syscall.SIGCONT) // without SIGCONT, a stopped process would not react to SIGTERM
	}
	w.killTimer.Reset(grace)
}

func (w *watch) signalTree(sigs ...syscall.Signal) {
	list, err := process.Descendants(w.self.PID)
	if err == nil {
		_, err = process.SignalAll(list, sigs...)
	}
	if err != nil && !w.warned {
		w.warned = true
		w.log.Warn("signalling job failed", "signals", sigs, "error", err)
	}
}

// completeOutcome sets the remaining fields of the outcome when all processes
// have exited. If the script could not be started, startErr says why.
func (w *watch) completeOutcome(startErr error) {
	// The clock may have been set back since the start, so the end is measured
	// from the start.
	w.outcome.Ended = w.outcome.Started.Add(time.Since(w.outcome.Started))
	if w.group != nil && w.group.OutOfMemory() && w.outcome.State != Completed {
		w.outcome.State = OutOfMemory
	}
	_, fault := errors.AsType[*faultError](startErr)
	switch {
	case startErr == nil, w.outcome.State != Failed && w.outcome.State != "":
	case errors.Is(startErr, errNoReport) && w.outcome.Status&0x7f != 0: // a signal has killed the second stage
	case fault, errors.Is(startErr, errNoReport):
		w.outcome.State, w.outcome.Reason, w.outcome.Status = NotStarted, startErr.Error(), 0
	default:
		w.outcome.State, w.outcome.Reason, w.outcome.Status = Failed, startErr.Error(), 1<<8
	}
	w.removeGroup()
}

// persistOutcome writes the outcome. If this fails, for example because the
// disk is full, persistOutcome tries again. Without an outcome the job would be
// reported as lost.
func (w *watch) persistOutcome() {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := writeOutcome(w.spec.Home, w.outcome)
		if err == nil {
			return
		}
		w.log.Error("writing outcome failed", "error", err)
		if _, e := os.Stat(w.spec.Home); errors.Is(e, os.ErrNotExist) {
			return
		}
		time.Sleep(pause)
	}
}

// reportTimeout limits the wait for the report of a second stage that has
// exited.
const reportTimeout = time.Second

// awaitReport returns the report of the second stage. It is called after all
// processes of the job have exited. The second stage runs as the user, so other
// processes of that user may hold the pipe open. If awaitReport waited until
// they close the pipe, the job might never end.
func (w *watch) awaitReport() error {
	select {
	case err := <-w.startResult:
		return err
	case <-time.After(reportTimeout):
		w.log.Warn("report pipe held open by another process")
		return nil
	}
}
