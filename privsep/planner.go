package privsep

import (
	"errors"
	"fmt"
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
	"schedrestd/guard"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

const configName = "schedrestd-config"

// Planner starts schedrestd-config, which reads command line, environment and
// configuration, and opens files for it until it has sent a Plan. As root it runs
// as an id that nobody has.
type Planner struct {
	program *os.File
	argv    []string
	env     []string
	out     *os.File // its standard output
	errOut  *os.File // its standard error
	setup   ipc.ConfigSetup
	jobs    chan func() // run on a thread that has no_new_privs and that the program's death signal hangs on
}

const (
	mostQuestions = 10_000          // that it may ask: a site has a file for each rack
	replanLimit   = 2 * time.Minute // for a Plan at a reload; names may have to be resolved
)

// NewPlanner opens the program, which gets these arguments and, of the environment, what concerns it.
func NewPlanner(args, environ []string, out, errOut *os.File, setup ipc.ConfigSetup) (*Planner, error) {
	return newPlanner("", args, environ, out, errOut, setup)
}

// newPlanner is NewPlanner for the program at path; "" is the one beside this program.
func newPlanner(path string, args, environ []string, out, errOut *os.File, setup ipc.ConfigSetup) (*Planner, error) {
	if err := refuseSetuid(); err != nil {
		return nil, err
	}
	if err := security.CloseInherited(); err != nil {
		return nil, err
	}
	setup.Root = os.Geteuid() == 0
	setup.Directory, _ = os.Getwd()
	p := &Planner{argv: append([]string{configName}, args...), out: out, errOut: errOut, setup: setup, jobs: make(chan func())}
	for _, v := range environ {
		if strings.HasPrefix(v, "SCHED") || strings.HasPrefix(v, "SLURM") {
			p.env = append(p.env, v)
		}
	}
	p.setup.Variables = uint16(min(len(p.env), 1<<16-1))
	var err error
	if p.program, err = spawn.OpenProgram("configuration reader", path, configName, p.identities()[0].Identity, p.setup.Root); err != nil {
		return nil, err
	}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		ready <- security.NoNewPrivsThread()
		for job := range p.jobs {
			job()
		}
	}()
	return p, <-ready
}

// Close lets the program go. A Plan can't be had any more.
func (p *Planner) Close() {
	close(p.jobs)
	p.program.Close()
}

// identities are those that the program can run with, the best first.
func (p *Planner) identities() (list []service) {
	if !p.setup.Root {
		return []service{{Identity: security.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}}}
	}
	for _, id := range append(become.Strangers(), become.Overflow) {
		list = append(list, service{Identity: security.Identity{UID: id, GID: id}, root: true})
	}
	return list
}

// Plan returns what the program makes of the configuration. Without a Plan and
// without an error the program has done or said all that there is, and status is its
// exit status.
func (p *Planner) Plan() (plan *ipc.WholePlan, status int, err error) {
	for _, who := range p.identities() {
		plan, status, err = p.run(who)
		if status != stage.ExitIdentity { // no such id in this user namespace
			break
		}
	}
	switch {
	case err != nil || plan != nil:
		return plan, 0, err
	case status == stage.ExitIdentity:
		if err := checkCapabilities(); err != nil {
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

// Replan is Plan while the gateway serves.
func (p *Planner) Replan() (*ipc.WholePlan, error) {
	p.setup.Again = true
	plan, _, err := p.Plan()
	return plan, err
}

// run is one run of the program as who.
func (p *Planner) run(who service) (plan *ipc.WholePlan, status int, err error) {
	channel, theirs, err := ipc.Pair(ipc.Parent, ipc.Config)
	if err != nil {
		return nil, 1, err
	}
	defer channel.Close()
	ended := make(chan result, 1)
	started := make(chan error)
	pidfd := -1
	p.jobs <- func() {
		pid, err := p.start(who, theirs, &pidfd)
		unix.Close(theirs)
		started <- err
		if err == nil {
			go func() { ended <- waitFor(pid) }()
		}
	}
	if err := <-started; err != nil {
		return nil, 1, err
	}
	child := &spawn.Process{PIDFD: os.NewFile(uintptr(pidfd), configName)}
	defer child.PIDFD.Close()
	if p.setup.Again {
		late := time.AfterFunc(replanLimit, child.Kill)
		defer late.Stop()
	}
	plan, err = p.converse(channel)
	if err != nil && !errors.Is(err, io.EOF) {
		child.Kill()
		<-ended
		return nil, 1, err
	}
	end := <-ended
	return plan, end.status, end.err
}

// result is how a process ended.
type result struct {
	status int
	err    error
}

func waitFor(pid int) result {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, 0, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return result{1, errs.Wrap(err, errs.Internal, "wait for %s", configName)}
		case ws.Signaled() && ws.Signal() != unix.SIGPIPE:
			return result{1, errs.New(errs.Internal, "%s was %s", configName, spawn.Describe(ws))}
		case ws.Signaled():
			return result{1, nil} // nobody reads what it prints
		}
		return result{ws.ExitStatus(), nil}
	}
}

// start starts the program on this thread.
func (p *Planner) start(who service, channel int, pidfd *int) (pid int, err error) {
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, errs.Wrap(err, errs.Internal, "open %s", os.DevNull)
	}
	defer unix.Close(null)
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   spawn.Environ(runtime.NumCPU()),
		Files: []uintptr{uintptr(null)},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: pidfd},
	}
	for _, f := range []*os.File{p.out, p.errOut} {
		fd := null
		if f != nil {
			fd = int(f.Fd())
		}
		attr.Files = append(attr.Files, uintptr(fd))
	}
	attr.Files = append(attr.Files, uintptr(channel))
	var path string
	argv := p.argv
	if who.root {
		report := len(attr.Files)
		attr.Files = append(attr.Files, uintptr(null), p.program.Fd())
		target := stage.Target{UID: who.UID, GID: who.GID, DeathSignal: syscall.SIGKILL, Path: stage.File(report + 1), Argv: argv, Env: attr.Env, Report: uint32(report)}
		path = stage.Program
		argv, attr.Env = target.Command()
	} else {
		program, err := spawn.OutOfTheWay(p.program, attr.Files)
		if err != nil {
			return 0, err
		}
		defer unix.Close(program)
		path = stage.File(program)
	}
	pid, _, err = syscall.StartProcess(path, argv, attr)
	if err == nil && *pidfd < 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return 0, errs.New(errs.Unsupported, "this kernel has no pidfd: Linux 5.3 or later is needed")
	}
	return pid, errs.Wrap(err, errs.Internal, "start %s", p.program.Name())
}

// converse tells the program what it needs, and answers it until its Plan is complete.
func (p *Planner) converse(channel *ipc.Channel) (*ipc.WholePlan, error) {
	if err := channel.Send(&p.setup); err != nil {
		return nil, io.EOF // its exit status says more
	}
	for _, v := range p.env[:p.setup.Variables] {
		if err := channel.Send(&ipc.Variable{Text: v}); err != nil {
			if _, ok := errors.AsType[*ipc.Violation](err); ok {
				name, _, _ := strings.Cut(v, "=")
				return nil, errs.New(errs.Invalid, "environment: the value of %s is too long", name)
			}
			return nil, io.EOF
		}
	}
	d := desk{root: p.setup.Root}
	var plan *ipc.WholePlan
	for {
		m, err := channel.Receive()
		if err != nil {
			return nil, err
		}
		switch m := m.Message.(type) {
		case *ipc.OpenFile:
			err = d.answer(channel, m)
		case *ipc.Judge:
			err = channel.Send(judgement(d.judge(m)))
		case *ipc.NoPlan:
			return nil, &errs.Error{Kind: errs.Kind(m.Class), Message: m.Text, Hint: m.Hint}
		case *ipc.Plan:
			if d.root && len(d.files) > d.judged {
				return nil, errs.New(errs.Internal, "%s sent a plan from files that were not judged", configName)
			}
			plan = &ipc.WholePlan{Plan: *m}
		case *ipc.PlanListen, *ipc.PlanSubuids:
			_, err = plan.Add(m)
		case *ipc.PlanSetup:
			_, err = plan.Add(m)
			return plan, err
		default:
			err = ipc.Unheard(m)
		}
		if err != nil {
			return nil, err
		}
	}
}

// desk opens files for one run of the program.
type desk struct {
	root   bool
	asked  int
	files  []string // configuration files that were opened
	judged int      // of them
}

// answer answers m.
func (d *desk) answer(channel *ipc.Channel, m *ipc.OpenFile) error {
	if d.asked++; d.asked > mostQuestions {
		return errs.New(errs.Internal, "%s asks for more than %d files", configName, mostQuestions)
	}
	f, err := d.open(m)
	if f == nil {
		return channel.Send(judgement(err))
	}
	defer f.Close()
	return channel.Send(&ipc.OpenedFD{}, int(f.Fd()))
}

// open opens what m asks for; no file and no error is a path that exists.
func (d *desk) open(m *ipc.OpenFile) (f *os.File, err error) {
	switch m.What {
	case ipc.OpenConfiguration:
		if f, _, err = guard.Open(m.Path, guard.Configuration); err == nil {
			d.files = append(d.files, m.Path)
		}
	case ipc.OpenAccounts:
		f, _, err = guard.Open(m.Path, guard.Accounts)
	case ipc.OpenWorker:
		who := service{Identity: security.Identity{UID: become.Overflow, GID: become.Overflow}, root: d.root}
		f, err = spawn.OpenWorker("", who.Identity, who.root)
	case ipc.OpenNothing:
		_, err = os.Lstat(m.Path)
	default:
		err = fmt.Errorf("open file of kind %d", m.What)
	}
	return f, err
}

// judge judges the configuration files that were opened so far.
func (d *desk) judge(m *ipc.Judge) error {
	trust := guard.Trust{Private: become.PrivateGroup, Owners: append([]uint32{}, m.Owners...), Groups: m.Groups}
	err := guard.Judge(d.files, guard.Configuration, trust)
	if err == nil {
		d.judged = len(d.files)
	}
	return err
}

// judgement is err as an answer.
func judgement(err error) *ipc.Judgement {
	if err == nil {
		return &ipc.Judgement{OK: true}
	}
	return &ipc.Judgement{Failure: ipc.Fail(uint8(errs.KindOf(err)), err.Error(), errs.HintOf(err))}
}
