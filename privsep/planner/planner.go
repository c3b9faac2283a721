// Package planner runs schedrestd-config, which reads the command line, the environment and the
// configuration without privileges, and returns its Plan. Until the Plan is complete it opens files for
// the program (see desk), as root those that root alone may read. It parses nothing but protocol frames.
package planner

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/become/stage"
	"schedrestd/errs"
	"schedrestd/exitstatus"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/privsep/thread"
	"schedrestd/security"
)

const configName = "schedrestd-config"

// Planner starts schedrestd-config. As root it runs under an id that no user has.
type Planner struct {
	program *os.File
	argv    []string
	env     []string
	out     *os.File // its standard output
	errOut  *os.File // its standard error
	setup   ipc.ConfigSetup
	thread  *thread.Thread // has no_new_privs; the program dies with it
}

// replanLimit is the time for a Plan at a reload, for which names may have to be resolved.
const replanLimit = 2 * time.Minute

// New opens the program, which gets these arguments and the variables of environ that concern it.
func New(args, environ []string, out, errOut *os.File, setup ipc.ConfigSetup) (*Planner, error) {
	return newPlanner("", args, environ, out, errOut, setup)
}

// newPlanner returns a Planner for the program at path; "" is the one beside
// this program.
func newPlanner(path string, args, environ []string, out, errOut *os.File, setup ipc.ConfigSetup) (*Planner, error) {
	if err := security.RefuseSetuid(); err != nil {
		return nil, err
	}
	if err := security.CloseInherited(); err != nil {
		return nil, err
	}
	setup.Root = os.Geteuid() == 0
	setup.Directory, _ = os.Getwd()
	p := &Planner{argv: append([]string{configName}, args...), out: out, errOut: errOut, setup: setup}
	for _, v := range environ {
		if strings.HasPrefix(v, "SCHED") || strings.HasPrefix(v, "SLURM") {
			p.env = append(p.env, v)
		}
	}
	p.setup.Variables = uint16(min(len(p.env), 1<<16-1))
	id := p.ids()[0]
	var err error
	if p.program, err = spawn.OpenProgram("configuration reader", path, configName, security.Identity{UID: id, GID: id}, p.setup.Root); err != nil {
		return nil, err
	}
	p.thread, err = thread.Start(security.NoNewPrivsThread)
	return p, err
}

// ids returns the uids and gids that the program can run with, the best first.
func (p *Planner) ids() []uint32 {
	if !p.setup.Root {
		return []uint32{uint32(os.Geteuid())}
	}
	return append(become.UnusedIDs(), become.Overflow)
}

// Plan returns the program's Plan. Without a Plan and without an error the program has done or printed
// everything, and status is its exit status.
func (p *Planner) Plan() (plan *ipc.WholePlan, status int, err error) {
	for _, id := range p.ids() {
		plan, status, err = p.run(id)
		if status != stage.ExitIdentity { // no such id in this user namespace
			break
		}
	}
	switch {
	case err != nil || plan != nil:
		return plan, 0, err
	case status == stage.ExitIdentity:
		if err := spawn.CheckCapabilities(); err != nil {
			return nil, 1, err
		}
		return nil, 1, errs.New(errs.Unavailable, "there is no id to run %s with", configName).
			WithHint("cat /proc/self/uid_map  # map more ids than root's, or start as the serving user")
	case status == stage.ExitTarget:
		return nil, 1, errs.New(errs.Internal, "%s can't be executed", p.program.Name())
	case p.setup.Again:
		return nil, 1, errs.New(errs.Internal, "%s has exited without a plan", configName)
	}
	return nil, status, nil
}

// Replan returns a Plan while the gateway serves.
func (p *Planner) Replan() (*ipc.WholePlan, error) {
	p.setup.Again = true
	plan, _, err := p.Plan()
	return plan, err
}

// run runs the program once, as root with that uid and gid.
func (p *Planner) run(id uint32) (plan *ipc.WholePlan, status int, err error) {
	channel, fd, err := ipc.Pair(ipc.Parent, ipc.Config)
	if err != nil {
		return nil, 1, err
	}
	defer channel.Close()
	theirs := os.NewFile(uintptr(fd), "channel")
	var child *os.Process
	p.thread.Do(func() { child, err = p.start(id, theirs) })
	theirs.Close() // a copy kept here would hide the program's end
	if err != nil {
		return nil, 1, errs.Wrap(err, errs.Internal, "start %s", p.program.Name())
	}
	if p.setup.Again {
		late := time.AfterFunc(replanLimit, func() { _ = child.Kill() })
		defer late.Stop()
	}
	plan, err = p.converse(channel)
	failed := err != nil && !errors.Is(err, io.EOF)
	if failed {
		_ = child.Kill()
	}
	end, waited := child.Wait()
	switch {
	case failed:
		return nil, 1, err
	case waited != nil:
		return nil, 1, errs.Wrap(waited, errs.Internal, "wait for %s", configName)
	}
	switch ws := end.Sys().(syscall.WaitStatus); {
	case ws.Signaled() && ws.Signal() != unix.SIGPIPE:
		return plan, 1, errs.New(errs.Internal, "%s was %s", configName, exitstatus.Describe(unix.WaitStatus(ws)))
	case ws.Signaled():
		return plan, 1, nil // the reader of its output is gone
	default:
		return plan, ws.ExitStatus(), nil
	}
}

// start starts the program on this thread.
func (p *Planner) start(id uint32, channel *os.File) (*os.Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := []*os.File{null, null, null, channel}
	for i, f := range []*os.File{p.out, p.errOut} {
		if f != nil {
			files[1+i] = f
		}
	}
	path, argv, env := "", p.argv, spawn.Environ(runtime.NumCPU())
	if p.setup.Root {
		report := len(files)
		files = append(files, null, p.program)
		target := stage.Target{UID: id, GID: id, DeathSignal: syscall.SIGKILL, Path: stage.File(report + 1), Argv: argv, Env: env, Report: uint32(report)}
		path = stage.Program
		argv, env = target.Command()
	} else {
		var used []uintptr
		for _, f := range files {
			used = append(used, f.Fd())
		}
		program, err := spawn.OutOfTheWay(p.program, used)
		if err != nil {
			return nil, err
		}
		defer unix.Close(program)
		path = stage.File(program)
	}
	return os.StartProcess(path, argv, &os.ProcAttr{Dir: "/", Env: env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}})
}
