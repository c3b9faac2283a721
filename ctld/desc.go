package ctld

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"schedrestd/become"
	"schedrestd/ctld/queue"
	"schedrestd/ctld/step"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/server"
)

// Limits of what is taken into a job.
const (
	maxScript      = 4 << 20
	maxEnvironment = 4 << 20 // the kernel's own limit for exec is lower, and the user's to meet
	maxPath        = 4096
	maxName        = 1024
	maxComment     = 4096
	maxTasks       = 1 << 20
)

// accept judges a job that who hands in, and makes of it what is recorded, what is
// run, and what the user is told.
func (c *Controller) accept(who server.Identity, d *model.JobDesc, now time.Time) (*job, *step.Spec, string, error) {
	user, group, err := c.runAs(who, d)
	if err != nil {
		return nil, nil, "", err
	}
	part, err := c.partitionOf(d)
	if err != nil {
		return nil, nil, "", err
	}
	for _, check := range []func(*model.JobDesc) error{checkSupported, checkScript, checkEnvironment, checkPaths, checkTexts} {
		if err := check(d); err != nil {
			return nil, nil, "", err
		}
	}
	need, err := c.need(d)
	if err != nil {
		return nil, nil, "", err
	}
	limit, err := timeLimit(d, part)
	if err != nil {
		return nil, nil, "", err
	}
	j := &job{record: record{Need: need, Size: size(d)}}
	j.Job = c.shownAs(d, now)
	j.Job.UserID, j.Job.UserName, j.Job.GroupID = user.UID, user.Name, group
	j.Job.Partition, j.Job.TimeLimit = part.Name, limit
	j.Job.NumCPUs, j.Job.TRESReq = uint32(need.CPUs), tres(need.CPUs, need.Memory)+",node=1"

	env, stripped := stripSecrets(d.Environment)
	spec := &step.Spec{
		Script: step.Raw(d.Script), Environment: env, WorkDir: step.Raw(d.WorkDir),
		Append: d.OpenMode == openAppend, TimeLimit: time.Duration(limit.Number) * c.cfg.minute, Memory: need.Memory << 20,
	}
	for _, a := range arguments(d) {
		spec.Args = append(spec.Args, step.Raw(a))
	}
	return j, spec, said(stripped), nil
}

// size is what a job takes of the disk until it has ended, in bytes.
func size(d *model.JobDesc) int64 {
	n := len(d.Script)
	for _, list := range [][]string{d.Environment, d.Argv} {
		for _, s := range list {
			n += len(s)
		}
	}
	return int64(n)
}

// openAppend is JobDesc.OpenMode for "append to the output".
const openAppend = 1

// arguments are the script's: the first of Argv is its own name.
func arguments(d *model.JobDesc) []string {
	if len(d.Argv) == 0 {
		return nil
	}
	return d.Argv[1:]
}

// runAs is the user and group that the job runs as. Root and the scheduler's user may say
// who; others are who the credential says. A group must be one of the user's: its number is
// his word alone, and would else open every file of any group.
func (c *Controller) runAs(who server.Identity, d *model.JobDesc) (become.User, uint32, error) {
	uid := d.UserID.Or(who.UID)
	if uid != who.UID && !c.super(who.UID) {
		return become.User{}, 0, refuse(errs.Denied, fault.NoUserID, "you may not submit a job for user %d", uid)
	}
	if c.uid != 0 && uid != c.uid {
		return become.User{}, 0, refuse(errs.Denied, fault.AccessDenied, "this controller is not root and runs jobs of user %d alone", c.uid)
	}
	user, err := c.cfg.Users.LookupUID(uid)
	if err != nil {
		if errs.KindOf(err) != errs.NotFound {
			return become.User{}, 0, err
		}
		return become.User{}, 0, refuse(errs.Invalid, fault.UnknownUser, "user %d is not known on this machine", uid)
	}
	if c.uid != 0 {
		return user, user.GID, nil // the step can't change it anyhow
	}
	gid := user.GID
	switch {
	case d.GroupID.Set:
		gid = d.GroupID.Number
	case who.Kernel && uid == who.UID:
		gid = who.GID // as after newgrp(1)
	}
	if gid == user.GID {
		return user, gid, nil
	}
	groups, err := c.cfg.Users.Groups(user)
	switch {
	case err != nil:
		return become.User{}, 0, err
	case slices.Contains(groups, gid):
		return user, gid, nil
	case !d.GroupID.Set:
		return user, user.GID, nil // a set-group-ID program lent it to him for this connection
	}
	return become.User{}, 0, refuse(errs.Invalid, 2163, "user %s is not in group %d", user, gid)
}

func (c *Controller) partitionOf(d *model.JobDesc) (*model.Partition, error) {
	for i := range c.cfg.Partitions {
		p := &c.cfg.Partitions[i]
		if p.Name != d.Partition && (d.Partition != "" || p.Flags&partitionDefault == 0) {
			continue
		}
		if p.StateUp != partitionUp {
			return nil, refuse(errs.Unavailable, 2070, "the partition %s is down", p.Name)
		}
		return p, nil
	}
	if d.Partition == "" {
		return nil, refuse(errs.Invalid, fault.NoDefaultPartition, "the job names no partition, and there is no default one")
	}
	return nil, refuse(errs.Invalid, fault.InvalidPartition, "there is no partition %.64q", d.Partition)
}

// checkSupported refuses what would change how, when or where a job runs and that this
// controller does not do. Taken and left undone, it would run wrongly without a word.
func checkSupported(d *model.JobDesc) error {
	for what, asked := range map[string]bool{
		"job arrays":                d.Array != "",
		"dependencies":              d.Dependency != "",
		"reservations":              d.Reservation != "",
		"licenses":                  d.Licenses != "",
		"containers":                d.Container != "" || d.ContainerID != "",
		"generic resources":         d.TRESPerJob+d.TRESPerNode+d.TRESPerSocket+d.TRESPerTask+d.CPUsPerTRES+d.MemPerTRES != "",
		"features":                  d.Features != "" || d.BatchFeatures != "" || d.ClusterFeatures != "",
		"burst buffers":             d.BurstBuffer != "",
		"repeating jobs":            d.Cron.Set != 0,
		"X11 forwarding":            d.X11 != 0,
		"immediate jobs":            d.Immediate != 0,
		"a job id of one's own":     d.JobID.Or(0) != 0,
		"more than one node":        d.MinNodes.Or(1) > 1,
		"other clusters":            d.Clusters != "",
		"signals before the end":    d.WarnSignal != 0,
		"rebooting before the job":  d.Reboot.Or(0) != 0,
		"jobs that exclude a node":  d.ExcNodes != "",
		"more tasks than cpus used": d.Overcommit.Or(0) != 0,
	} {
		if asked {
			return refuse(errs.Unsupported, fault.NotSupported, "this controller does not do %s", what)
		}
	}
	return nil
}

func checkScript(d *model.JobDesc) error {
	line, _, _ := strings.Cut(d.Script, "\n")
	switch {
	case d.Script == "":
		return refuse(errs.Invalid, fault.NoScript, "the job has no script")
	case len(d.Script) > maxScript:
		return refuse(errs.TooLarge, fault.PathTooLong, "the script is longer than %d bytes", maxScript)
	case !strings.HasPrefix(line, "#!") || strings.TrimSpace(line[2:]) == "":
		return refuse(errs.Invalid, fault.NoScript, "the script's first line must name its interpreter, as #!/bin/sh")
	case strings.HasSuffix(line, "\r"):
		return refuse(errs.Invalid, fault.NoScript, "the script has DOS line ends")
	case strings.Contains(d.Script, "\x00"):
		return refuse(errs.Invalid, fault.NoScript, "the script has a NUL byte")
	}
	return nil
}

func checkEnvironment(d *model.JobDesc) error {
	if len(d.Environment) == 0 {
		return refuse(errs.Invalid, fault.NoEnvironment, "the job has no environment")
	}
	size := 0
	for _, v := range d.Environment {
		size += len(v)
		if i := strings.IndexByte(v, '='); i < 1 || strings.Contains(v, "\x00") {
			return refuse(errs.Invalid, fault.NoEnvironment, "the environment has %.40q, which is not NAME=value", v)
		}
	}
	if size > maxEnvironment {
		return refuse(errs.TooLarge, fault.PathTooLong, "the environment is longer than %d bytes", maxEnvironment)
	}
	return nil
}

func checkPaths(d *model.JobDesc) error {
	if d.WorkDir == "" || !filepath.IsAbs(d.WorkDir) {
		return refuse(errs.Invalid, fault.NoWorkDir, "the job needs a working directory, as an absolute path")
	}
	for _, p := range append([]string{d.WorkDir, d.StdOut, d.StdErr, d.StdIn}, d.Argv...) {
		if len(p) > maxPath {
			return refuse(errs.Invalid, fault.PathTooLong, "a path is longer than %d bytes", maxPath)
		}
		if strings.Contains(p, "\x00") {
			return refuse(errs.Invalid, fault.PathTooLong, "a path has a NUL byte")
		}
	}
	return nil
}

// checkTexts refuses what is kept of a job, shown to everybody who lists jobs, and sent to the
// accounting daemon, when it is too long for that.
func checkTexts(d *model.JobDesc) error {
	for _, t := range []struct {
		what, text string
		most       int
	}{
		{"name", d.Name, maxName}, {"account", d.Account, maxName}, {"qos", d.QOS, maxName}, {"wckey", d.WCKey, maxName},
		{"allocating node", d.AllocNode, maxName}, {"mail user", d.MailUser, maxName}, {"MCS label", d.MCSLabel, maxName},
		{"network", d.Network, maxName}, {"required nodes", d.ReqNodes, maxName},
		{"comment", d.Comment, maxComment}, {"admin comment", d.AdminComment, maxComment}, {"extra text", d.Extra, maxComment},
	} {
		if len(t.text) > t.most {
			return refuse(errs.TooLarge, fault.PathTooLong, "the job's %s is longer than %d bytes", t.what, t.most)
		}
	}
	return nil
}

// need is what the job takes of the machine: tasks times cpus, and memory per cpu or in all.
func (c *Controller) need(d *model.JobDesc) (queue.Need, error) {
	tasks, each := d.NumTasks.Or(1), d.CPUsPerTask.Or(1)
	if tasks == 0 || tasks > maxTasks {
		return queue.Need{}, refuse(errs.Invalid, fault.BadTaskCount, "a job has 1 to %d tasks, not %d", maxTasks, tasks)
	}
	if each == 0 {
		return queue.Need{}, refuse(errs.Invalid, fault.InvalidCPUCount, "a task has at least 1 cpu")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	total := c.queue.Total()
	need := queue.Need{CPUs: max(uint64(tasks)*uint64(each), uint64(d.MinCPUs.Or(0)), uint64(d.MinCPUsPerNode.Or(0)))}
	if d.Shared == model.Some[uint16](0) {
		need.CPUs = max(need.CPUs, total.CPUs) // alone on the node
	}
	if m := d.MinMemory; m.Set {
		amount := m.Number &^ model.MemPerCPU
		switch {
		case amount == 0:
			need.Memory = total.Memory // by convention: all there is
		case amount > 1<<40:
			return queue.Need{}, refuse(errs.Invalid, fault.InvalidTaskMemory, "%d MiB of memory is not acceptable", amount)
		case m.Number&model.MemPerCPU != 0:
			need.Memory = amount * need.CPUs
		default:
			need.Memory = amount
		}
	}
	if err := c.queue.Fits(need); errors.Is(err, queue.ErrNever) {
		return queue.Need{}, refuse(errs.Invalid, fault.NodeConfig, "the job asks for %v", err)
	}
	return need, nil
}

// timeLimit is the job's in minutes: its own, else the partition's default, else its limit.
func timeLimit(d *model.JobDesc, p *model.Partition) (model.Opt[uint32], error) {
	limit := d.TimeLimit
	if !limit.Set && !limit.Infinite {
		limit = p.DefaultTime
	}
	if !limit.Set && !limit.Infinite {
		limit = p.MaxTime
	}
	most := p.MaxTime
	switch {
	case limit.Set && limit.Number == 0:
		limit = most // by convention: none of its own
	case most.Set && (limit.Infinite || limit.Number > most.Number):
		return limit, refuse(errs.Invalid, fault.InvalidTimeLimit, "the partition %s allows %d minutes at the most", p.Name, most.Number)
	}
	return limit, nil
}

// shownAs is the job as it is shown, as far as the request says.
func (c *Controller) shownAs(d *model.JobDesc, now time.Time) model.Job {
	m := model.Job{
		Name: d.Name, Account: d.Account, AdminComment: d.AdminComment, Comment: d.Comment, Extra: d.Extra, QOS: d.QOS, WCKey: d.WCKey,
		AllocNode: d.AllocNode, AllocSID: d.AllocSID.Or(0), BatchFlag: 1, Cluster: c.cfg.Cluster, Detailed: true,
		State: model.JobPending, SubmitTime: model.At(now), EligibleTime: max(model.At(now), d.BeginTime), AccrueTime: model.At(now),
		Priority: d.Priority.Or(1), Nice: d.Nice.Or(model.NiceOffset), SiteFactor: model.NiceOffset,
		MailType: d.MailType, MailUser: d.MailUser, MCSLabel: d.MCSLabel, Network: d.Network, Deadline: d.Deadline,
		NumTasks: d.NumTasks.Or(1), CPUsPerTask: d.CPUsPerTask, MinCPUsPerNode: d.MinCPUsPerNode.Or(1), NumNodes: 1, MaxNodes: 1,
		MinMemory: d.MinMemory.Or(0), MinTmpDisk: d.MinTmpDisk.Or(0), ReqNodes: d.ReqNodes, Contiguous: d.Contiguous.Or(0),
		NTasksPerNode: d.NTasksPerNode, Shared: d.Shared, StdOut: d.StdOut, StdErr: d.StdErr, StdIn: d.StdIn,
		WorkDir: d.WorkDir, SubmitLine: d.SubmitLine[:min(len(d.SubmitLine), maxComment)], // as long as the shell allowed; to look at
		// Slurm's commands take "not set" for a number of these.
		TimeMin: model.Some(d.TimeMin.Or(0)), DelayBoot: model.Some(d.DelayBoot.Or(0)), SegmentSize: model.Some[uint16](0),
		MemUpdateDelay: model.Some[uint16](0), MemUpdateMargin: model.Some[uint16](0),
	}
	if m.Name == "" {
		m.Name = "sbatch" // what Slurm calls a script without a name
	}
	if m.Priority == 0 {
		m.StateReason = reasonHeldUser
	}
	if len(d.Argv) > 0 {
		m.Command = d.Argv[0]
	}
	return m
}
