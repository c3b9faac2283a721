package privsep

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// worker is one worker process as the parent sees it. The fields below mu of its
// pool are guarded by that.
type worker struct {
	number  uint32
	pid     int
	pidfd   *os.File // non-blocking: the poller waits for the death, no thread does
	channel *ipc.Channel
	log     *os.File      // reading end of its fd 2
	exit    chan string   // gets how the process ended
	silent  chan struct{} // closed when all that it logged was read
	started time.Time

	ready    bool
	ending   string                 // why the parent ended it; "" when it ended by itself
	held     map[uint64]*connection // what it was given and has not said Done of
	handed   uint64                 // connections given to it
	finished uint64                 // … that it finished
	asked    uint64                 // number of the last Ping
	waiting  time.Time              // since when that one is unanswered; zero when none is
}

// spawn starts a worker process and gives it its Setup and the posture to expect.
func (p *pool) spawn() (*worker, error) {
	channel, theirs, err := ipc.Pair(ipc.Parent, ipc.Worker)
	if err != nil {
		return nil, err
	}
	defer unix.Close(theirs) // a copy kept here would hide the worker's death
	logRead, logWrite, err := pipe()
	if err != nil {
		channel.Close()
		return nil, err
	}
	defer unix.Close(logWrite)
	w := &worker{number: p.spawner.number.Add(1), channel: channel, log: logRead, started: time.Now(),
		held: map[uint64]*connection{}, exit: make(chan string, 1), silent: make(chan struct{})}
	pid, pidfd, err := p.spawner.start(p.spawner.program, p.who, theirs, logWrite)
	if err != nil {
		channel.Close()
		logRead.Close()
		return nil, err
	}
	_ = unix.SetNonblock(pidfd, true)
	w.pid, w.pidfd = pid, os.NewFile(uintptr(pidfd), "worker")
	go func() {
		w.reap()
		// A process that the worker left behind may hold the channel open.
		time.AfterFunc(lastWords, func() { channel.Close() })
	}()
	go p.relay(w)
	expect := p.spawner.expect(p.who, p.config.files())
	for _, m := range []ipc.Message{&p.config.Setup, &expect} {
		if err := channel.TrySend(m); err != nil {
			return w, errs.Wrap(err, errs.Internal, "tell a worker what it needs")
		}
	}
	return w, nil
}

// pipe is a pipe whose reading end waits in the poller and whose writing end blocks.
func pipe() (*os.File, int, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, errs.Wrap(err, errs.Internal, "make a pipe")
	}
	_ = unix.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "worker's log"), fds[1], nil
}

// reap waits for the death of the process and takes its status, so that no zombie stays.
func (w *worker) reap() {
	status := "lost"
	raw, err := w.pidfd.SyscallConn()
	if err == nil {
		_ = raw.Read(func(uintptr) bool {
			var ws unix.WaitStatus
			pid, err := unix.Wait4(w.pid, &ws, unix.WNOHANG, nil)
			if err == unix.EINTR || err == nil && pid == 0 {
				return false
			}
			if err == nil {
				status = describe(ws)
			}
			return true
		})
	}
	w.exit <- status
}

func describe(ws unix.WaitStatus) string {
	if ws.Signaled() {
		return fmt.Sprintf("killed by signal %d (%s)", ws.Signal(), syscall.Signal(ws.Signal()))
	}
	return fmt.Sprintf("exit status %d", ws.ExitStatus())
}

// kill ends the process. The pidfd can't hit another one that got the same number.
func (w *worker) kill() {
	if raw, err := w.pidfd.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	}
}

// lastWords is how long a worker that closed its channel may take to exit, and how
// long the channel of a dead one is still read.
const lastWords = time.Second

// bury makes sure that the process is gone and closes all that the parent had of it.
// It returns how the process ended.
func (w *worker) bury(patience time.Duration) string {
	timer := time.AfterFunc(patience, w.kill)
	status := <-w.exit
	timer.Stop()
	w.channel.Close()
	w.pidfd.Close()
	select {
	case <-w.silent:
	case <-time.After(lastWords): // somebody else holds the pipe
	}
	w.log.Close()
	return status
}
