// Package demo runs the whole system on this machine for as long as somebody looks
// at it: accounting daemon, controller and gateway, from a configuration and a key
// of its own in a fresh directory. Nothing of it outlives the demo.
//
// Two processes see to that. The front is the one that a person started; it makes the
// directory and starts the stage, which starts the daemons and does the talking. Both are
// child subreapers: whatever was started below them, jobs that called setsid included, can
// only become their child when its own parents die. So both can end everything, by
// descent and not by a list of process numbers:
//
//   - Ctrl-C, or the end of --once: the stage ends the daemons in order, then all that is left.
//   - The front is killed with -9: its end of a pipe closes, and the stage does the same.
//   - The stage is killed with -9: the kernel kills the daemons (Pdeathsig), their jobs fall to the
//     front, and the front ends them.
//
// Only when both are killed at the same moment, jobs that run then go on until their time limit.
//
// It serves on the loopback interface, for whoever can read the directory's token.
// It is no way to run a service.
package demo

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"schedrestd/errs"
)

// DefaultListen is where the gateway listens when nobody says otherwise.
const DefaultListen = "127.0.0.1:6820"

// binaries are the programs that the demo starts.
var binaries = []string{"schedrestd", "schedrestd-config", "schedrestd-worker", "schedrestd-keeper", "schedrestd-resolver", "schedrestd-auditor", "schedctld", "scheddbd"}

// Options say what to show, and how.
type Options struct {
	Listen string // HOST:PORT of the gateway; port 0: any free one
	Once   bool   // show one job from end to end, then stop
	Stage  string // this process is the stage of the demo in that directory; see the package comment
	Out    io.Writer
	Err    io.Writer
}

// Status is the exit status of a demo whose stage has said already what went wrong.
type Status int

func (s Status) Error() string { return fmt.Sprintf("the demo ended with status %d", int(s)) }

// Run shows the demo and returns when nothing of it is left.
func Run(opt Options) error {
	if opt.Stage != "" {
		return runStage(opt)
	}
	if _, err := findBinaries(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return errs.Wrap(err, errs.Internal, "find this program")
	}
	if opt.Listen, err = freeAddress(opt.Listen); err != nil {
		return err
	}
	if err := adopt(); err != nil {
		return err
	}
	// From here on a signal must not end this process before it has swept.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	dir, err := os.MkdirTemp("", "sched-demo-")
	if err != nil {
		return errs.Wrap(err, errs.Internal, "make a directory for the demo")
	}
	err = front(opt, self, dir, signals)
	return errors.Join(err, sweep(), remove(dir))
}

// front runs the stage and passes on to it, once, that it should stop.
func front(opt Options, program, dir string, signals <-chan os.Signal) error {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()
	args := []string{"demo", "--stage", dir, "--listen", opt.Listen}
	if opt.Once {
		args = append(args, "--once")
	}
	stage := exec.Command(program, args...)
	stage.Stdout, stage.Stderr, stage.ExtraFiles = opt.Out, opt.Err, []*os.File{theirs}
	err = stage.Start()
	theirs.Close()
	if err != nil {
		return errs.Wrap(err, errs.Internal, "start %s", program)
	}
	done := make(chan error, 1)
	go func() { done <- stage.Wait() }()
	for asked := 0; ; asked++ {
		select {
		case err := <-done:
			return status(err)
		case <-signals:
			if asked > 0 {
				stage.Process.Kill()
			}
			ours.Close()
		}
	}
}

// status is what the end of the stage means for this process.
func status(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case !ok:
		return err
	case exit.ExitCode() > 0:
		return Status(exit.ExitCode())
	}
	return errs.New(errs.Internal, "the demo was cut short: %v", exit)
}

// findBinaries is the directory where the others are: this program's, or the sbin beside it once
// they are installed. What the PATH has might be of another build.
func findBinaries() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", errs.Wrap(err, errs.Internal, "find this program")
	}
	beside := filepath.Dir(self)
	for _, dir := range []string{beside, filepath.Join(filepath.Dir(beside), "sbin")} {
		if !slices.ContainsFunc(binaries, func(name string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err != nil
		}) {
			return dir, nil
		}
	}
	return "", errs.New(errs.NotFound, "%s are not all beside schedctl in %s", strings.Join(binaries, ", "), beside).WithHint("make build")
}

// freeAddress makes sure, before anything starts, that the gateway will be able to
// listen at address, and picks the port when it is 0.
func freeAddress(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", errs.New(errs.Invalid, "--listen %s is not HOST:PORT", address).WithHint("for example --listen 127.0.0.1:6820")
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return "", errs.New(errs.Conflict, "%s is in use by another program", address).
			WithHint("is another demo running? For a free port: make demo LISTEN=%[1]s, or schedctl demo --listen %[1]s", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return "", errs.New(errs.Invalid, "can't listen at %s: %v", address, err)
	}
	defer l.Close()
	if port == "0" {
		_, port, _ = net.SplitHostPort(l.Addr().String())
	}
	return net.JoinHostPort(host, port), nil
}
