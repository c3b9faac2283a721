package step

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ctld/cgroup"
	"schedrestd/ctld/failpoint"
	"schedrestd/ctld/process"
)

// watch is the first stage at work: one goroutine, one loop.
type watch struct {
	spec  *Spec
	given *os.File // what spec was read from
	log   *slog.Logger
	self  process.Identity
	group *cgroup.Group // nil: none

	main    int        // the script's process
	started chan error // told once whether the script was started
	signals chan os.Signal
	sampler *time.Ticker // nil: the kernel keeps the memory limit, or there is none
	kill    *time.Timer  // next time to kill what is left; stopped until the job is to end
	pause   time.Duration

	outcome Outcome
	ending  bool // the tree was told to end
	exited  bool // the script's process has ended
	warned  bool // about processes that can't be signalled: once is enough
}

func watchMain() int {
	// On the thread that Main has locked: the script's process is to die with this one, and the
	// kernel takes "this one" to be the thread that started it.
	report := os.NewFile(reportFD, "report")
	w, err := newWatch()
	if err != nil {
		fmt.Fprint(report, err) // as ErrTaken is compared with by Start
		return 1
	}
	report.Close()
	failpoint.Here("claimed")
	w.run()
	failpoint.Here("ended")
	w.persist()
	return 0
}

// newWatch gets ready and claims the job. From its return on the job counts as started.
func newWatch() (*watch, error) {
	w := &watch{started: make(chan error, 1), signals: make(chan os.Signal, 64), kill: time.NewTimer(time.Hour)}
	w.kill.Stop()
	// Those that a terminal or a service manager may send are caught and dropped. They must
	// not be ignored: the script would inherit that.
	catch := []os.Signal{syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT}
	for sig := syscall.Signal(1); sig <= lastSignal; sig++ {
		catch = append(catch, forwarded+sig)
	}
	signal.Notify(w.signals, catch...)
	// Whatever the job starts and abandons becomes a child of this process, and can be found.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	var err error
	w.given = os.NewFile(specFD, "spec")
	if w.spec, err = receive(w.given); err != nil {
		return nil, err
	}
	w.log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("job", w.spec.Job)
	if w.self, err = process.Self(); err != nil {
		return nil, err
	}
	w.makeGroup()
	w.outcome.Started = time.Now()
	c := Claim{Step: w.self, Started: w.outcome.Started}
	if w.group != nil {
		c.Cgroup = w.group.Path
	}
	failpoint.Here("unclaimed")
	if err := claim(w.spec.Home, c); err != nil {
		w.removeGroup()
		return nil, err
	}
	return w, nil
}

// run starts the script and returns when it and all that descends from it has ended.
func (w *watch) run() {
	limit := make(<-chan time.Time)
	if w.spec.TimeLimit > 0 {
		limit = time.After(w.spec.TimeLimit) // includes the start
	}
	w.expose()
	if err := w.start(); err != nil {
		w.started <- err
	}
	w.protect()
	w.given.Close()
	w.spec.Script, w.spec.Environment = "", nil // may be megabytes, for hours
	sample := make(<-chan time.Time)
	if w.sampler != nil {
		sample = w.sampler.C
	}
	for w.reap() {
		select {
		case sig := <-w.signals:
			w.signalled(sig.(syscall.Signal))
		case <-limit:
			w.end(Timeout, w.spec.KillWait)
		case <-sample:
			w.measure()
		case <-w.kill.C:
			w.killAll()
		}
	}
	w.conclude(w.heard())
}

// reap collects children that have ended, and tells whether any are left. As a subreaper
// this process is the parent of all that would else be orphans, so "no children"
// is the kernel's word that nothing of the job is left.
func (w *watch) reap() (left bool) {
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
				w.end(w.outcome.State, w.spec.KillWait) // the job ends with its script
			}
			return true
		}
		w.outcome.User += time.Duration(usage.Utime.Nano())
		w.outcome.System += time.Duration(usage.Stime.Nano())
		w.outcome.MaxRSS = max(w.outcome.MaxRSS, uint64(usage.Maxrss)<<10)
		if pid == w.main && !w.exited {
			w.exited = true
			w.outcome.Status = uint32(status)
			if !w.ending {
				w.outcome.State = verdict(status)
			}
		}
	}
}

// verdict is how the job ended when the script's process ended by itself.
func verdict(status syscall.WaitStatus) State {
	if status.Exited() && status.ExitStatus() == 0 {
		return Completed
	}
	return Failed
}

func (w *watch) signalled(sig syscall.Signal) {
	switch {
	case sig == syscall.SIGTERM:
		w.end(Cancelled, w.spec.KillWait)
	case sig > forwarded:
		w.tell(sig - forwarded)
	}
}

// end begins the end of the job, unless it has begun: SIGTERM to the whole tree, SIGKILL to
// what is left after grace. The first cause is the one that is reported.
func (w *watch) end(cause State, grace time.Duration) {
	if w.ending {
		return
	}
	w.ending = true
	w.outcome.State = cause
	if grace > 0 {
		w.tell(syscall.SIGTERM, syscall.SIGCONT) // a stopped process would not notice
	}
	w.kill.Reset(grace)
}

func (w *watch) tell(sigs ...syscall.Signal) {
	list, err := process.Descendants(w.self.PID)
	if err == nil {
		_, err = process.SignalAll(list, sigs...)
	}
	if err != nil && !w.warned {
		w.warned = true
		w.log.Warn("signal the job", "signals", sigs, "error", err)
	}
}

// conclude completes the outcome when nothing of the job is left. failed is why the script
// could not be started, if so.
func (w *watch) conclude(failed error) {
	w.outcome.Ended = time.Now()
	if w.group != nil && w.group.OutOfMemory() && w.outcome.State != Completed {
		w.outcome.State = OutOfMemory
	}
	if failed != nil && (w.outcome.State == Failed || w.outcome.State == "") {
		w.outcome.State, w.outcome.Reason = Failed, failed.Error()
		w.outcome.Status = 1 << 8
	}
	w.removeGroup()
}

// persist writes the outcome. A full disk is waited out: without an outcome the job
// would be reported as lost, although all about it is known here.
func (w *watch) persist() {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := report(w.spec.Home, w.outcome)
		if err == nil {
			return
		}
		w.log.Error("write the job's outcome", "error", err)
		if _, e := os.Stat(w.spec.Home); errors.Is(e, os.ErrNotExist) {
			return
		}
		time.Sleep(pause)
	}
}

// lastWords is how long a second stage that is dead may take to be heard.
const lastWords = time.Second

// heard is what the second stage said, nothing of the job being left. It does not wait for
// the end of the pipe: the stage is the user, whose other processes may have got hold of its
// end and keep it open, and the job would run for ever.
func (w *watch) heard() error {
	select {
	case err := <-w.started:
		return err
	case <-time.After(lastWords):
		w.log.Warn("somebody keeps the end of the pipe that the job's start was reported by")
		return nil
	}
}

// listen passes on what the second stage says: nothing, when the script was started.
func listen(from *os.File) error {
	defer from.Close()
	text, err := io.ReadAll(io.LimitReader(from, 1024))
	if len(text) > 0 {
		return errors.New(string(text))
	}
	return err
}
