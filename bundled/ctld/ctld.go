// Package ctld is the bundled controller: it queues batch jobs and runs them on
// this one machine.
//
// The controller has three parts. The journal stores every accepted job on
// disk: the controller accepts a submission only after the job is in the
// journal. The queue decides which job starts next. A step process runs each
// job, enforces its limits, and outlives the controller (package step). The
// type Controller connects these parts. The controller may crash at any moment,
// because it can restore all of its state from the journal and the steps'
// files.
//
// Some files handle the stages of a job's life. submit.go makes a job from a
// request and writes it to the journal. launch.go starts the job, follows its
// step and records how it ended. usage.go limits what each user may use.
// recover.go resumes jobs after a restart. forget.go removes jobs some time
// after they end. spool.go sends records of jobs to the accounting daemon.
//
// Other files handle the requests: ping.go, node.go, partition.go, job.go,
// submit.go, kill.go, killjobs.go, update.go, requeue.go, token.go,
// configfiles.go and inquiry.go. amend.go changes a job in the journal. snapshot.go holds the
// snapshots from which lists are made.
//
// The controller never opens or enters a path that a user names: see package
// step.
package ctld

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/become/nss"
	"schedrestd/bundled/ctld/cgroup"
	"schedrestd/bundled/ctld/journal"
	"schedrestd/bundled/ctld/machine"
	"schedrestd/bundled/ctld/queue"
	"schedrestd/bundled/ctld/step"
	"schedrestd/bundled/daemon"
	"schedrestd/conf"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

// Config configures a Controller.
type Config struct {
	StateDir   string // directory that only this controller uses; created if missing
	Cluster    string
	Node       string // name of this machine's node; "": the machine's host name
	Address    string // of this machine, shown to clients
	Port       int    // port on which the controller listens, shown to clients
	Version    string // of this program, shown to clients
	SchedUser  uint32 // may do everything that root may do
	CPUs       int    // that jobs may use; 0: all
	Memory     uint64 // MiB that jobs may use; 0: all
	Partitions []model.Partition
	Users      Users
	Tokens     *Tokens    // nil: this controller creates no tokens
	Accounting Accounting // nil: the cluster has no accounting
	Private    conf.PrivateData
	KeptLimits []string // limits of jobs, such as CORE, that submissions do not change
	Log        *slog.Logger

	ConfigFiles []model.ConfigFile // sent to machines without a configuration; nil to send none

	KillWait  time.Duration // from SIGTERM to SIGKILL; 0: 30 s
	Retention time.Duration // how long a job is shown after its end; 0: 10 min
	MaxJobs   int           // waiting, running and shown; 0: 10000

	minute time.Duration // unit of time limits; 0: a minute. Tests make it shorter
	limits limits        // per user and in total; zero: defaultLimits. Tests lower them
}

// Defaults of Config.
const (
	defaultKillWait  = 30 * time.Second
	defaultRetention = 10 * time.Minute
)

// Users is the interface through which the controller looks up users.
type Users interface {
	LookupUser(name string) (nss.User, error)
	LookupUID(uid uint32) (nss.User, error)
	Groups(u nss.User) ([]uint32, error)
}

// System is the implementation of Users that asks this machine's NSS.
type System struct{}

// LookupUser finds a user by name.
func (System) LookupUser(name string) (nss.User, error) { return nss.LookupUser(name) }

// LookupUID finds a user by number.
func (System) LookupUID(uid uint32) (nss.User, error) { return nss.LookupUID(uid) }

// Groups returns all groups of u, the primary group first.
func (System) Groups(u nss.User) ([]uint32, error) { return nss.Groups(u) }

// Controller is a running controller: the state directory, the jobs in memory,
// and their steps.
type Controller struct {
	cfg       Config
	log       *slog.Logger
	startedAt time.Time
	uid       uint32 // of this process
	privacy   daemon.Privacy
	facts     machine.Facts
	lock      *os.File
	journal   *journal.Journal
	program   *step.Program
	stepLog   *os.File
	cgroup    cgroup.Base // empty path: no cgroup
	spool     *spool      // nil: the cluster has no accounting
	ctx       context.Context
	stop      context.CancelFunc
	tasks     sync.WaitGroup
	wake      chan struct{} // a value sent on it makes Run look at the queue

	large *semaphore.Semaphore[uint32] // has one place, held while a large job is encoded and written, so that only one encoding is in memory; acquired before mu; keys are users

	rates *rate.Buckets[uint32] // bytes that are written for the jobs of each user

	diskFull atomic.Bool // the last submission was refused because the journal's disk is almost full

	queries *semaphore.Semaphore[uint32] // limits how many lists are encoded concurrently

	// mu guards the fields below. It is not held while lists are filtered,
	// sorted and encoded.
	mu            sync.Mutex
	jobs          map[uint32]*job
	usage         usage
	queue         *queue.Queue
	breakers      breakers
	nextID        uint32                // number of the next job
	changedAt     model.Time            // when a job last changed
	latestUpdate  model.Time            // latest time that updateTimeLocked has returned
	revision      uint64                // number of changes of jobs
	snapshotCache []*record             // latest snapshot; nil if a job has changed since
	idleSince     model.Time            // when the last job ended
	forgotten     model.ControllerStats // counts the jobs that have been forgotten
}

// Open locks the state directory and reads the state that an earlier controller
// left in it. It also starts to follow the jobs that are still running. Open
// does not start waiting jobs; Run does that. If ctx is done before Open has
// read the state, Open returns ctx's error.
func Open(ctx context.Context, cfg Config) (*Controller, error) {
	c := &Controller{cfg: cfg, log: cfg.Log, startedAt: time.Now(), uid: uint32(os.Geteuid()),
		jobs: make(map[uint32]*job), breakers: make(breakers), wake: make(chan struct{}, 1), nextID: 1, queries: daemon.NewQueries(),
		large: semaphore.New[uint32](limit.LargeJobs)}
	c.setDefaults()
	c.rates = rate.NewBuckets[uint32](limit.JobBytes.Of(float64(c.cfg.limits.burst), float64(c.cfg.limits.rate)))
	c.privacy = daemon.Privacy{Hidden: cfg.Private, Super: c.super}
	c.privacy.Log(c.log, conf.PrivateJobs|conf.PrivateNodes|conf.PrivatePartitions)
	c.ctx, c.stop = context.WithCancel(context.Background())
	if err := c.open(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Controller) setDefaults() {
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
	if cfg.Retention == 0 {
		cfg.Retention = defaultRetention
	}
	if cfg.MaxJobs == 0 {
		cfg.MaxJobs = limit.Jobs.Total
	}
	if len(cfg.Partitions) == 0 {
		cfg.Partitions = []model.Partition{defaultPartition()}
	}
	c.changedAt, c.idleSince = model.At(c.startedAt), model.At(c.startedAt)
}

func (c *Controller) open(ctx context.Context) error {
	if err := c.readMachine(); err != nil {
		return err
	}
	var err error
	if c.lock, c.cfg.StateDir, err = openStateDir(c.cfg.StateDir); err != nil {
		return err
	}
	if c.program, err = step.OpenProgram(); err != nil {
		return err
	}
	if c.stepLog, err = openStepLog(filepath.Join(c.cfg.StateDir, "step.log")); err != nil {
		return err
	}
	if c.cgroup, err = cgroup.Delegated(); err != nil {
		c.log.Info("memory limits enforced by sampling", "reason", err)
	} else if !c.cgroup.CanLimitMemory {
		c.log.Info("memory limits enforced by sampling", "reason",
			"the cgroup has no memory controller, or the unit does not set DelegateSubgroup=schedctld")
	}
	if c.journal, err = journal.Open(filepath.Join(c.cfg.StateDir, "journal")); err != nil {
		return err
	}
	if n := c.journal.TornSize(); n > 0 {
		// Usually the last commit was interrupted and never acknowledged. But a
		// disk that loses acknowledged writes leaves the same traces.
		c.log.Warn("journal truncated after the last complete commit; the last change may be lost", "bytes", n)
	}
	if c.cfg.Accounting != nil {
		c.spool = newSpool(c)
	}
	return c.recover(ctx)
}

func (c *Controller) readMachine() error {
	var err error
	if c.facts, err = machine.Read(); err != nil {
		return fmt.Errorf("read machine description: %w", err)
	}
	if c.cfg.Node == "" {
		c.cfg.Node = c.facts.Hostname
	}
	total := queue.Resources{CPUs: uint64(c.facts.CPUs), Memory: c.facts.Memory}
	if n := uint64(c.cfg.CPUs); n > 0 {
		total.CPUs = min(n, total.CPUs)
	}
	if n := c.cfg.Memory; n > 0 {
		total.Memory = min(n, total.Memory)
	}
	c.queue = queue.New(total)
	return nil
}

// openStepLog opens the file to which steps report problems. If the file is
// larger than 1 MiB, openStepLog first renames it to step.log.old. An existing
// step.log.old is replaced.
func openStepLog(path string) (*os.File, error) {
	if st, err := os.Lstat(path); err == nil && st.Size() > 1<<20 {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|noFollow, 0o600)
}

// Run starts jobs until ctx is done, and then returns nil. If the journal can
// no longer be written, Run returns an error. In both cases running jobs
// continue.
func (c *Controller) Run(ctx context.Context) error {
	if c.spool != nil {
		c.tasks.Go(c.spool.run)
	}
	forgetTicker := time.NewTicker(max(c.cfg.Retention/20, time.Second))
	defer forgetTicker.Stop()
	beginTimer := time.NewTimer(0)
	defer beginTimer.Stop()
	for {
		c.schedule(beginTimer)
		select {
		case <-ctx.Done():
			return nil
		case <-c.journal.Broken():
			return errors.New("journal no longer writable")
		case <-c.wake:
		case <-beginTimer.C:
		case <-forgetTicker.C:
			c.forget()
		}
	}
}

// wakeScheduler makes Run look at the queue again.
func (c *Controller) wakeScheduler() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Close stops following the steps and unlocks the state directory. The steps
// continue to run their jobs. Close may be called only after Run has returned
// and all requests have been answered.
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
	for _, f := range []*os.File{c.stepLog, c.lock} { // the lock must be released last
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// activeIDs returns the numbers of the jobs that wait or run.
func (c *Controller) activeIDs() (ids []uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, j := range c.jobs {
		if j.phase != ended {
			ids = append(ids, id)
		}
	}
	return ids
}

// super reports whether uid has unrestricted access to all jobs. See
// daemon.Super.
func (c *Controller) super(uid uint32) bool {
	return uid == 0 || uid == c.cfg.SchedUser || uid == c.uid
}

// home returns the path of a directory for the files of one run of a job (see
// package step). Each run has a directory of its own, so that files of one run
// are never mistaken for files of the next run.
func (c *Controller) home(id uint32, run uint16) string {
	name := fmt.Sprint(id)
	if run > 0 {
		name = fmt.Sprintf("%d-%d", id, run)
	}
	return filepath.Join(c.cfg.StateDir, "steps", name)
}

// parseHomeName parses the last element of a path that home returned. It
// returns the number of the job and the number of the run.
func parseHomeName(name string) (id uint32, run uint16, ok bool) {
	first, second, hasRun := strings.Cut(name, "-")
	n, err := strconv.ParseUint(first, 10, 32)
	if err != nil {
		return 0, 0, false
	}
	if hasRun {
		r, err := strconv.ParseUint(second, 10, 16)
		return uint32(n), uint16(r), err == nil
	}
	return uint32(n), 0, true
}
