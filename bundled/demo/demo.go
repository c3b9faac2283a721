// Package demo runs the whole system on this machine until the user stops it.
// The system consists of the accounting daemon, the controller and the gateway.
// These programs have their own configuration and key in a temporary directory.
// When the demo ends, none of its processes is left.
//
// Two processes ensure that none is left. The process that the user started is
// called the front. It creates the directory and starts a second process, the
// stage. The stage starts the daemons and prints the output.
//
// The front and the stage are both child subreapers. If the parent of a process
// exits, the process becomes a child of the stage. If the stage has exited, the
// process becomes a child of the front. This is also true for jobs that called
// setsid. So the front and the stage can find and kill all of their descendants
// without a list of process ids:
//
//   - After Ctrl-C, or at the end of --once, the stage stops the daemons one by
//     one. Then it kills all other processes.
//   - If the front is killed with -9, the kernel closes the front's end of the
//     pipe that leads to the stage. The stage notices this and stops the demo in
//     the same way.
//   - If the stage is killed with -9, the kernel kills the daemons (Pdeathsig).
//     Their jobs become children of the front, which kills them.
//
// If the front and the stage are killed at the same moment, running jobs
// continue until their time limit.
//
// By default the demo listens only on the loopback interface. Only users who
// can read the token in the directory can use the demo. The demo is not
// suitable for running a service.
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

	"schedrestd/become"
	"schedrestd/internal/errs"
)

// DefaultListen is the default address of the gateway.
const DefaultListen = "127.0.0.1:6820"

// binaries lists the programs that the demo starts.
var binaries = []string{
	"schedrestd", "schedrestd-config", "schedrestd-worker", "schedrestd-keeper", "schedrestd-resolver",
	"schedrestd-auditor", "schedrestd-exporter", "schedrestd-dispatcher", "schedrestd-output", "schedrestd-credential", "schedctld", "scheddbd",
}

// Options configure a demo.
type Options struct {
	Listen string // HOST:PORT of the gateway; port 0: any free port
	Once   bool   // stop when the job has ended
	TLS    bool   // the daemons use TLS
	Stage  string // directory of the demo if this process is the stage (see the package comment)
	Out    io.Writer
	Err    io.Writer
}

// Status is the exit status of the demo if the stage, the demo's second
// process, has already printed the error.
type Status int

func (s Status) Error() string { return fmt.Sprintf("demo exited with status %d", int(s)) }

// Run runs the demo and returns when all of its processes have exited.
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
	if err := checkUser(become.Ucred{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}); err != nil {
		return err
	}
	if opt.Listen, err = freeAddress(opt.Listen); err != nil {
		return err
	}
	if err := becomeSubreaper(); err != nil {
		return err
	}
	// From here on, a signal must not end this process until it has killed all
	// other processes of the demo.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	dir, err := os.MkdirTemp("", "sched-demo-")
	if err != nil {
		return errs.New(errs.Internal, "create a directory for the demo: %v", err).WithHint("set TMPDIR to a directory that you can write to")
	}
	err = runFront(opt, self, dir, signals)
	return errors.Join(err, sweep(), remove(dir))
}

// runFront starts the second process, the stage, with a pipe, and waits until
// the stage exits. At the first signal, runFront closes its end of the pipe, so
// that the stage stops the demo. At any later signal, it kills the stage.
func runFront(opt Options, program, dir string, signals <-chan os.Signal) error {
	readEnd, writeEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer writeEnd.Close()
	args := []string{"demo", "--stage", dir, "--listen", opt.Listen}
	if opt.Once {
		args = append(args, "--once")
	}
	if opt.TLS {
		args = append(args, "--tls")
	}
	stage := exec.Command(program, args...)
	stage.Stdout, stage.Stderr, stage.ExtraFiles = opt.Out, opt.Err, []*os.File{readEnd}
	err = stage.Start()
	readEnd.Close()
	if err != nil {
		return errs.Wrap(err, errs.Internal, "start %s", program)
	}
	done := make(chan error, 1)
	go func() { done <- stage.Wait() }()
	for signalCount := 0; ; signalCount++ {
		select {
		case err := <-done:
			return status(err)
		case <-signals:
			if signalCount > 0 {
				stage.Process.Kill()
			}
			writeEnd.Close()
		}
	}
}

// status converts the result of the stage to the result of the demo.
func status(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case !ok:
		return err
	case exit.ExitCode() > 0:
		return Status(exit.ExitCode())
	}
	return errs.New(errs.Internal, "demo interrupted: %v", exit)
}

// checkUser checks that the daemons would accept u, the user of the demo. Root
// may run the demo in any group.
func checkUser(u become.Ucred) error {
	if err := u.Verify(); err != nil && u.UID != 0 {
		return errs.New(errs.Denied, "the demo can't run with uid %d and gid %d: the daemons refuse these ids", u.UID, u.GID).
			WithHint("run it as another user, whose group is neither 0 nor %d", become.Overflow)
	}
	return nil
}

// findBinaries returns the directory of the other programs. This is the
// directory of this program or, after an installation, the directory sbin next
// to it. Programs in PATH are not used, because they could be from another
// build.
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
	return "", errs.New(errs.NotFound, "some of the programs %s are not in %s", strings.Join(binaries, ", "), beside).
		WithHint("run make build")
}

// freeAddress checks that the gateway can listen on address. The check takes
// place before anything is started. freeAddress returns the address. If the
// port is 0, it is replaced with a free port.
func freeAddress(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", errs.New(errs.Invalid, "--listen %s is not HOST:PORT", address).WithHint("example: --listen 127.0.0.1:6820")
	}
	l, err := net.Listen("tcp", address)
	if failure, ok := errors.AsType[*net.OpError](err); ok {
		err = failure.Err // without the address, which the error below names
	}
	free := net.JoinHostPort(host, "0")
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "", errs.New(errs.Conflict, "%s is in use by another program", address).
			WithHint("if another demo is running, use a free port: make demo LISTEN=%[1]s, or schedctl demo --listen %[1]s", free)
	case errors.Is(err, syscall.EACCES):
		return "", errs.New(errs.Denied, "listen on %s: %v", address, err).
			WithHint("ports below 1024 need root; use a free port: make demo LISTEN=%[1]s, or schedctl demo --listen %[1]s", free)
	case err != nil:
		return "", errs.New(errs.Invalid, "listen on %s: %v", address, err).WithHint("example: --listen 127.0.0.1:6820")
	}
	defer l.Close()
	if port == "0" {
		_, port, _ = net.SplitHostPort(l.Addr().String())
	}
	return net.JoinHostPort(host, port), nil
}
