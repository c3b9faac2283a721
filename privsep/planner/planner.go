// Package planner runs schedrestd-config, which reads the command line, the
// environment and the configuration without privileges, and returns its Plan.
// Until the Plan is complete, the package opens files for that program
// (receive.go). If the parent is root, these can be files that only root may read.
// The package parses nothing but protocol frames.
package planner

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/become/stage"
	"schedrestd/internal/errs"
	"schedrestd/internal/exitstatus"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

const configName = "schedrestd-config"

// Planner starts schedrestd-config. When the parent is root, the program runs
// under an id that no user has, or as the owner of become.ConfigCache.
type Planner struct {
	program  *os.File
	identity security.Identity
	argv     []string
	env      []string
	out      *os.File // the program's standard output
	errOut   *os.File // the program's standard error
	setup    ipc.ConfigSetup
	spawner  *spawn.Spawner // starts the program without namespaces; the program is killed when its spawner stops
}

// replanLimit limits how long schedrestd-config may take to make a new Plan at
// a reload. This includes the time for resolving names.
var replanLimit = 2 * time.Minute

// New returns a Planner and opens its program, schedrestd-config. When the
// program runs, it gets args and the variables of environ that concern it.
func New(args, environ []string, out, errOut *os.File, setup ipc.ConfigSetup) (*Planner, error) {
	return newPlanner("", args, environ, out, errOut, setup)
}

// newPlanner returns a Planner for the program at path. If path is "",
// newPlanner uses the schedrestd-config in the directory of the running
// program.
func newPlanner(path string, args, environ []string, out, errOut *os.File, setup ipc.ConfigSetup) (*Planner, error) {
	uid, gid, err := uint32(os.Geteuid()), uint32(os.Getegid()), error(nil)
	if setup.Root = uid == 0; setup.Root {
		if uid, gid, err = become.ReaderID(); err != nil {
			return nil, err
		}
	}
	setup.Directory, _ = os.Getwd()
	p := &Planner{argv: append([]string{configName}, args...), out: out, errOut: errOut, setup: setup, identity: security.Identity{UID: uid, GID: gid}}
	for _, v := range environ {
		if strings.HasPrefix(v, "SCHED") || strings.HasPrefix(v, "SLURM") || strings.HasPrefix(v, "TZ=") {
			p.env = append(p.env, v)
		}
	}
	p.setup.Variables = uint16(min(len(p.env), 1<<16-1))
	if p.program, err = spawn.OpenProgram("configuration reader", path, configName, p.identity, p.setup.Root); err != nil {
		return nil, err
	}
	// The switches come from schedrestd-config, which has not run yet. So the
	// parent does not know yet whether it may unshare the descriptor table and
	// the IPC namespace.
	p.spawner, err = spawn.New(spawn.Options{Root: p.setup.Root, Plain: true, Switches: ipc.Switches{DisableUnshareFiles: true, DisableUnshareSysV: true}})
	return p, err
}

// Plan runs the program, and returns its Plan and its exit status. If Plan
// returns neither a Plan nor an error, the program has already done what the
// command line asks for, such as printing help.
func (p *Planner) Plan() (plan *ipc.PackedPlan, status int, err error) {
	child, err := p.spawner.Launch(spawn.Spec{Role: ipc.Config, Program: p.program, Argv: p.argv, Threads: runtime.NumCPU(),
		Identity: p.identity, Out: p.out, Log: p.errOut, Quiet: true})
	if err != nil {
		return nil, 1, err
	}
	defer child.Close()
	if p.setup.Reload {
		defer time.AfterFunc(replanLimit, child.Kill).Stop()
	}
	plan, err = p.receivePlan(child.Channel)
	failed := err != nil && !errors.Is(err, io.EOF)
	if failed {
		child.Kill()
	}
	<-child.Exited
	ws := child.Status
	switch status = ws.ExitStatus(); {
	case failed:
		return nil, 1, err
	case ws.Signaled() && ws.Signal() != unix.SIGPIPE:
		return nil, 1, errs.New(errs.Internal, "%s was %s", configName, exitstatus.Describe(ws))
	case plan != nil:
		if !p.setup.Reload {
			p.setup.SchedUID, p.setup.SocketMode = plan.Service.SchedUID, plan.SocketMode
		}
		return plan, 0, nil
	case status == stage.ExitIdentity, status == stage.ExitTarget:
		return nil, 1, errs.New(errs.Internal, "%s cannot be executed", p.program.Name())
	case p.setup.Reload:
		return nil, 1, errs.New(errs.Internal, "%s exited without a plan", configName)
	case ws.Signaled(): // SIGPIPE: nothing reads the program's output any longer
		return nil, 1, nil
	}
	return nil, status, nil
}

// Replan returns a new Plan for a reload, while the gateway serves.
func (p *Planner) Replan() (*ipc.PackedPlan, error) {
	p.setup.Reload = true
	plan, _, err := p.Plan()
	return plan, err
}
