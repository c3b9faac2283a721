// Package ctld is the shipped controller: it queues batch jobs and runs them for real,
// on this one machine.
//
// Three things make it up. The journal has every job that was accepted; a submit
// is answered when it is in there, on the disk. The queue decides who is next. A step
// process runs each job, keeps its limits, and outlives the controller (package step). The
// Controller here only joins them: it holds nothing that it could not read again
// from the journal and the steps' files, so it may die at any moment.
//
// The way of a job: submit.go makes a job of a request and commits it; launch.go
// starts it when its turn has come, follows its step and records the end; usage.go is what
// each user may have here;
// recover.go is what a controller does on return; forget.go drops jobs that ended a
// while ago; spool.go passes them to the accounting daemon. The requests are one file
// each: ping.go, node.go, partition.go, job.go, submit.go, kill.go, token.go. Lists are
// made from the snapshots of snapshot.go.
//
// It never opens or enters what a user names: see package step.
package ctld

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/ctld/cgroup"
	"schedrestd/ctld/journal"
	"schedrestd/ctld/machine"
	"schedrestd/ctld/queue"
	"schedrestd/ctld/step"
	"schedrestd/daemon"
	"schedrestd/model"
	"schedrestd/semaphore"
)

// Config is what a Controller is told at its start.
type Config struct {
	State      string // directory that is the controller's alone; made when missing
	Cluster    string
	Node       string // name of this machine's node; "": its host name
	Address    string // of this machine, as shown
	Port       int    // that the controller listens on, as shown
	Version    string // of this program, as shown
	SchedUser  uint32 // may do everything, as root may
	CPUs       int    // that jobs may use; 0: all
	Memory     uint64 // MiB that jobs may use; 0: all
	Partitions []model.Partition
	Users      Users
	Tokens     *Tokens    // nil: this controller makes none
	Accounting Accounting // nil: the cluster has none
	Private    conf.PrivateData
	Log        *slog.Logger

	KillWait time.Duration // from SIGTERM to SIGKILL; 0: 10 s
	Keep     time.Duration // how long a job is shown after its end; 0: 10 min
	MaxJobs  int           // waiting, running and shown; 0: 10000

	minute time.Duration // what time limits are counted in; tests have no time for real ones
	limits limits        // of what users have; zero: defaultLimits. Tests have less to write
}

// Defaults of Config.
const (
	defaultKillWait = 10 * time.Second
	defaultKeep     = 10 * time.Minute
	defaultMaxJobs  = 10000
)

// Users finds the users of this machine.
type Users interface {
	LookupUser(name string) (nss.User, error)
	LookupUID(uid uint32) (nss.User, error)
	Groups(u nss.User) ([]uint32, error)
}

// System is the users that this machine's NSS knows.
type System struct{}

// LookupUser finds a user by name.
func (System) LookupUser(name string) (nss.User, error) { return nss.LookupUser(name) }

// LookupUID finds a user by number.
func (System) LookupUID(uid uint32) (nss.User, error) { return nss.LookupUID(uid) }

// Groups is every group of u, the primary one first.
func (System) Groups(u nss.User) ([]uint32, error) { return nss.Groups(u) }

// Controller is a running controller.
type Controller struct {
	cfg     Config
	log     *slog.Logger
	started time.Time
	uid     uint32 // of this process
	privacy daemon.Privacy
	facts   machine.Facts
	lock    *os.File
	journal *journal.Journal
	program *step.Program
	stepLog *os.File
	cgroup  cgroup.Base // empty path: none
	spool   *spool      // nil: no accounting
	ctx     context.Context
	stop    context.CancelFunc
	tasks   sync.WaitGroup
	wake    chan struct{} // the queue may have something to start
	large   sync.Mutex    // held while a large job is encoded and written: memory has one of them at a time. Taken before mu

	queries *semaphore.Semaphore[uint32] // bounds the lists that are encoded concurrently

	// mu guards the fields below. Lists are neither filtered, sorted nor encoded under it.
	mu      sync.Mutex
	jobs    map[uint32]*job
	usage   usage
	queue   *queue.Queue
	next    uint32     // number of the next job
	changed model.Time // when a job last changed
	edits   uint64     // number of changes of jobs
	sorted  []*record  // the current snapshot; nil when it is out of date
	idle    model.Time // when the last job ended
}

// Open takes over the state directory, reads what an earlier controller left, and takes up the
// jobs that still run. Nothing is started before Run.
func Open(cfg Config) (*Controller, error) {
	c := &Controller{cfg: cfg, log: cfg.Log, started: time.Now(), uid: uint32(os.Geteuid()),
		jobs: make(map[uint32]*job), wake: make(chan struct{}, 1), next: 1, queries: daemon.NewQueries()}
	c.complete()
	c.privacy = daemon.Privacy{Hidden: cfg.Private, Super: c.super}
	c.privacy.Log(c.log, conf.PrivateJobs|conf.PrivateNodes|conf.PrivatePartitions)
	c.ctx, c.stop = context.WithCancel(context.Background())
	if err := c.open(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Controller) complete() {
	cfg := &c.cfg
	if c.log == nil {
		c.log = slog.Default()
	}
	if cfg.Users == nil {
		cfg.Users = System{}
	}
	if cfg.minute == 0 {
		cfg.minute = time.Minute
	}
	if cfg.limits == (limits{}) {
		cfg.limits = defaultLimits
	}
	if cfg.KillWait == 0 {
		cfg.KillWait = defaultKillWait
	}
	if cfg.Keep == 0 {
		cfg.Keep = defaultKeep
	}
	if cfg.MaxJobs == 0 {
		cfg.MaxJobs = defaultMaxJobs
	}
	if len(cfg.Partitions) == 0 {
		cfg.Partitions = []model.Partition{defaultPartition()}
	}
	c.changed, c.idle = model.At(c.started), model.At(c.started)
}

func (c *Controller) open() error {
	if err := c.readMachine(); err != nil {
		return err
	}
	var err error
	if c.lock, c.cfg.State, err = takeState(c.cfg.State); err != nil {
		return err
	}
	if c.program, err = step.OpenProgram(); err != nil {
		return err
	}
	if c.stepLog, err = openStepLog(filepath.Join(c.cfg.State, "step.log")); err != nil {
		return err
	}
	if c.cgroup, err = cgroup.Delegated(); err != nil {
		c.log.Info("memory limits enforced by sampling", "reason", err)
	} else if !c.cgroup.Memory {
		c.log.Info("memory limits enforced by sampling", "reason", "the cgroup has no memory controller, or the unit does not set DelegateSubgroup=schedctld")
	}
	if c.journal, err = journal.Open(filepath.Join(c.cfg.State, "journal")); err != nil {
		return err
	}
	if n := c.journal.Cut(); n > 0 {
		c.log.Warn("journal truncated after the last complete commit", "bytes", n)
	}
	if c.cfg.Accounting != nil {
		c.spool = newSpool(c)
	}
	return c.recover()
}

func (c *Controller) readMachine() error {
	var err error
	if c.facts, err = machine.Read(); err != nil {
		return fmt.Errorf("read machine description: %w", err)
	}
	if c.cfg.Node == "" {
		c.cfg.Node = c.facts.Hostname
	}
	total := queue.Need{CPUs: uint64(c.facts.CPUs), Memory: c.facts.Memory}
	if n := uint64(c.cfg.CPUs); n > 0 {
		total.CPUs = min(n, total.CPUs)
	}
	if n := c.cfg.Memory; n > 0 {
		total.Memory = min(n, total.Memory)
	}
	c.queue = queue.New(total)
	return nil
}

// openStepLog opens the file that steps write to when something is wrong. It is kept small
// by starting it anew; one before it is kept.
func openStepLog(path string) (*os.File, error) {
	if st, err := os.Lstat(path); err == nil && st.Size() > 1<<20 {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|noFollow, 0o600)
}

// Run starts jobs until ctx ends, when it returns nil, or until nothing can be recorded any
// more. Jobs that run then go on running.
func (c *Controller) Run(ctx context.Context) error {
	if c.spool != nil {
		c.tasks.Go(c.spool.run)
	}
	forget := time.NewTicker(max(c.cfg.Keep/20, time.Second))
	defer forget.Stop()
	begin := time.NewTimer(0)
	defer begin.Stop()
	for {
		c.schedule(begin)
		select {
		case <-ctx.Done():
			return nil
		case <-c.journal.Broken():
			return errors.New("journal no longer writable")
		case <-c.wake:
		case <-begin.C:
		case <-forget.C:
			c.forget()
		}
	}
}

// poke has Run look at the queue again.
func (c *Controller) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Close lets go of the steps, which run on, and of the state directory. Run must have
// returned and no request be under way.
func (c *Controller) Close() error {
	c.stop()
	c.tasks.Wait()
	c.mu.Lock()
	for _, j := range c.jobs {
		if j.step != nil {
			j.step.Close()
		}
	}
	c.mu.Unlock()
	var err error
	if c.journal != nil {
		err = c.journal.Close()
	}
	if c.program != nil {
		c.program.Close()
	}
	for _, f := range []*os.File{c.stepLog, c.lock} { // the lock last
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// unended is the jobs that wait or run.
func (c *Controller) unended() (ids []uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, j := range c.jobs {
		if j.phase != ended {
			ids = append(ids, id)
		}
	}
	return ids
}

// super tells who may do everything to everyone's jobs, as daemon.Super does.
func (c *Controller) super(uid uint32) bool {
	return uid == 0 || uid == c.cfg.SchedUser || uid == c.uid
}

func (c *Controller) home(id uint32) string {
	return filepath.Join(c.cfg.State, "steps", fmt.Sprint(id))
}
