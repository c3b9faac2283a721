// Package fetcher fetches the configuration of a cluster from its controllers in
// a process of its own. A controller is reached over the network, and without TLS
// anyone on the way can answer in its place. So the answer is decoded in a process
// that can't ask the gateway's parent for files.
//
// schedrestd-config starts the process (Fetch), and passes it what it needs: the
// addresses, the token, the CA. The process executes the worker's program, so that
// schedrestd-config need not link the code for the protocol, and enters the sandbox
// of a worker, in which it can't open files and connections (package confined). It
// receives each connection from schedrestd-config, which it asks for an endpoint by
// its index. It writes the result to its standard output and exits.
//
// schedrestd-config trusts the files in the result as it would trust a file on this
// machine, but not the process: it limits the time that the process runs, its
// connections and the length of what it writes, and checks the form of the result.
package fetcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/excerpt"
	"schedrestd/internal/exitstatus"
	"schedrestd/internal/fdpass"
	"schedrestd/internal/printable"
	"schedrestd/rpc/confserver"
)

// Name is the process's name in its arguments.
const Name = "schedrestd-fetch"

// Options configures Fetch.
type Options struct {
	Program *os.File // the worker's
	Log     *slog.Logger

	CAFile     string // with the CAs of the controllers; "" for no TLS
	CA         []byte // text of CAFile
	CheckNames bool   // a certificate must contain a name of its controller

	Audit   bool // see sandbox.Options
	Require bool // the sandbox must be complete

	Argv []string // additional arguments; only tests set it
}

// Limits on what a captured process can use.
const (
	maxConnections = 1000 // a request needs a few to each address
	maxOutput      = 32 << 20
	maxLog         = 4 << 10
	exitGrace      = 2 * time.Second // between the process's own time limit and its end
)

// A Task is what the process reads from its standard input.
type Task struct {
	confserver.Task
	Limit          time.Duration
	CAFile         string
	CA             []byte
	CheckNames     bool
	Audit, Require bool
}

// Fetch fetches the configuration. The time limit is for the whole request. The
// kind of the error is BadAnswer if the process crashes or writes an invalid
// result.
func Fetch(limit time.Duration, t confserver.Task, o Options) (conf.Sent, error) {
	input, err := json.Marshal(Task{Task: t, Limit: limit, CAFile: o.CAFile, CA: o.CA, CheckNames: o.CheckNames, Audit: o.Audit, Require: o.Require})
	if err != nil {
		return conf.Sent{}, errs.Wrap(err, errs.Internal, "fetch the configuration")
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit+exitGrace)
	defer cancel()
	p, err := start(ctx, o.Program, input, o.Argv)
	if err != nil {
		return conf.Sent{}, errs.Wrap(err, errs.Internal, "start %s", Name)
	}
	b := broker{task: t, log: o.Log}
	go b.serve(ctx, p.channel)
	output, err := p.wait(cancel)
	if text := p.log.String(); text != "" {
		o.Log.Warn("messages of "+Name, "text", printable.Text(strings.TrimSpace(text)))
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return conf.Sent{}, errs.Wrap(err, errs.Timeout, "fetch the configuration from %s: not finished within %s", t.Servers, limit)
	}
	if err != nil {
		return conf.Sent{}, errs.Wrap(err, errs.BadAnswer, "fetch the configuration from %s", t.Servers)
	}
	sent, err := decodeResult(output)
	if err == nil && !slices.ContainsFunc(t.Endpoints, func(e confserver.Endpoint) bool { return e.Kind == confserver.Controller && e.Name == sent.Origin }) {
		err = errs.New(errs.BadAnswer, "%s names another controller: %s", Name, printable.Text(sent.Origin))
	}
	if err != nil {
		return conf.Sent{}, err
	}
	return sent, nil
}

// process is a running process that fetches.
type process struct {
	cmd     *exec.Cmd
	channel *os.File // on which it asks for connections
	out     *os.File // its standard output
	log     excerpt.Buffer
}

// start starts the process. It is killed when ctx or this process ends.
//
// The calling goroutine keeps its thread until wait returns, because the kernel
// kills the process when the thread that started it exits.
func start(ctx context.Context, program *os.File, input []byte, args []string) (p *process, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fds[0], true)
	}
	if err != nil {
		return nil, fmt.Errorf("make a channel: %w", err)
	}
	p = &process{cmd: exec.CommandContext(ctx, "/proc/self/fd/"+strconv.Itoa(int(program.Fd()))), channel: os.NewFile(uintptr(fds[0]), "channel"), log: excerpt.Buffer{Max: maxLog}}
	fdpass.Refuse(fds[0])
	theirs := os.NewFile(uintptr(fds[1]), "channel")
	defer theirs.Close()
	out, write, err := os.Pipe()
	if err != nil {
		p.channel.Close()
		return nil, err
	}
	defer write.Close()
	p.out = out
	c := p.cmd
	c.Args = append([]string{Name}, args...)
	c.Env = []string{"GOMAXPROCS=2", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"} // otherwise the runtime opens files of cgroups
	c.Dir = "/"
	c.Stdin, c.Stdout, c.Stderr, c.ExtraFiles = bytes.NewReader(input), write, &p.log, []*os.File{theirs}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	c.WaitDelay = exitGrace
	runtime.LockOSThread()
	if err := c.Start(); err != nil {
		runtime.UnlockOSThread()
		p.channel.Close()
		p.out.Close()
		return nil, err
	}
	return p, nil
}

// wait returns what the process has written when it has exited. If it writes too
// much, wait calls kill.
func (p *process) wait(kill func()) ([]byte, error) {
	defer runtime.UnlockOSThread()
	defer p.channel.Close()
	defer p.out.Close()
	output, err := io.ReadAll(io.LimitReader(p.out, maxOutput+1))
	long := len(output) > maxOutput
	if long || err != nil {
		kill()
	}
	waitErr := p.cmd.Wait()
	var exit *exec.ExitError
	switch {
	case long:
		return nil, fmt.Errorf("%s has written more than %d bytes", Name, maxOutput)
	case err != nil:
		return nil, fmt.Errorf("read the result of %s: %w", Name, err)
	case errors.As(waitErr, &exit):
		return nil, fmt.Errorf("%s: %s", Name, exitstatus.Describe(unix.WaitStatus(exit.Sys().(syscall.WaitStatus))))
	case waitErr != nil:
		return nil, fmt.Errorf("%s: %w", Name, waitErr)
	}
	return output, nil
}
