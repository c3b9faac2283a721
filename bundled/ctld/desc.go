package ctld

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"schedrestd/become/nss"
	"schedrestd/bundled/ctld/queue"
	"schedrestd/bundled/ctld/step"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/server"
)

// Limits of a job description.
const (
	maxScript      = 4 << 20
	maxEnvironment = 4 << 20 // exec(2) has a lower limit, which applies when the job starts
	maxPath        = 4096
	maxName        = 1024
	maxComment     = 4096
	maxTasks       = 1 << 20
	maxBeginDelay  = 366 * 24 * time.Hour // until begin_time
)

// prepareJob checks a job that a client submits. It returns the job for the
// journal, the spec for the step, and a message for the user.
func (c *Controller) prepareJob(client server.Identity, d *model.JobDesc, now time.Time) (*job, *step.Spec, string, error) {
	if !c.super(client.UID) && d.Nice.Set && d.Nice.Number < model.NiceOffset {
		return nil, nil, "", refuseField(errs.Invalid, fault.InvalidNice, "nice", "only root and the scheduler's user may set it below 0")
	}
	if d.AdminComment.Empty() {
		d.AdminComment = "" // a new job has no comment that an empty text could remove
	}
	if err := checkRestricted(d, c.super(client.UID)); err != nil {
		return nil, nil, "", err
	}
	foldNames(d)
	user, group, err := c.runAs(client, d)
	if err != nil {
		return nil, nil, "", err
	}
	part, err := c.partitionOf(d)
	if err != nil {
		return nil, nil, "", err
	}
	for _, check := range []func(*model.JobDesc) error{checkSupported, checkScript, checkEnvironment, checkPaths, checkTexts, c.checkNodes} {
		if err := check(d); err != nil {
			return nil, nil, "", err
		}
	}
	need, err := c.need(d)
	if err != nil {
		return nil, nil, "", err
	}
	limit, err := timeLimit(d.TimeLimit, part)
	if err != nil {
		return nil, nil, "", err
	}
	if limit.Set && d.TimeMin.Or(0) > limit.Number {
		return nil, nil, "", refuseField(errs.Invalid, fault.InvalidTimeMin, "time_minimum", "longer than the time limit, %d minutes", limit.Number)
	}
	if d.BeginTime > model.At(now.Add(maxBeginDelay)) {
		return nil, nil, "", refuseField(errs.Invalid, fault.InvalidTimeValue, "begin_time", "more than %d days ahead", maxBeginDelay/(24*time.Hour))
	}
	j := &job{record: &record{Need: need}}
	j.Job = c.jobFromDesc(d, now)
	j.Job.UserID, j.Job.UserName, j.Job.GroupID = user.UID, user.Name, group
	if err := c.checkExpanded(&j.Job); err != nil {
		return nil, nil, "", err
	}
	j.Job.Partition, j.Job.TimeLimit = part.Name, limit
	j.Job.NumCPUs, j.Job.TRESReq = uint32(need.CPUs), tres(need.CPUs, need.Memory)+",node=1"

	env, stripped := stripSecrets(d.Environment)
	spec := &step.Spec{
		Script: step.Raw(d.Script), Environment: env, WorkDir: step.Raw(d.WorkDir.String()),
		Append: d.OpenMode == openAppend, TimeLimit: time.Duration(limit.Number) * c.cfg.minute, Memory: need.Memory << 20,
	}
	for _, a := range arguments(d) {
		spec.Args = append(spec.Args, step.Raw(a))
	}
	return j, spec, userMessage(d, stripped), nil
}

// foldNames converts the names of d in accounting to lower case, as slurmctld does.
func foldNames(d *model.JobDesc) {
	for _, name := range []*model.Text{&d.Account, &d.WCKey} {
		*name = model.Text(strings.ToLower(string(*name)))
	}
}

// openAppend is the value of JobDesc.OpenMode that makes a job append to its
// output file.
const openAppend = 1

// arguments returns the arguments of the script. It omits the first element of
// Argv, which is the script's own name.
func arguments(d *model.JobDesc) []string {
	if len(d.Argv) == 0 {
		return nil
	}
	return d.Argv[1:]
}

// runAs returns the user and the group that the job runs as. Root and the
// scheduler's user may submit jobs for every user. Other users may submit jobs
// only for themselves. A requested group must be one of the user's groups,
// because otherwise users could read the files of any group.
func (c *Controller) runAs(client server.Identity, d *model.JobDesc) (nss.User, uint32, error) {
	uid := d.UserID.Or(client.UID)
	if uid != client.UID && !c.super(client.UID) {
		return nss.User{}, 0, refuseField(errs.Denied, fault.NoUserID, "user_id", "you may not submit jobs as user %d", uid)
	}
	if c.uid != 0 && uid != c.uid {
		return nss.User{}, 0, refuseField(errs.Denied, fault.AccessDenied, "user_id",
			"this controller does not run as root and accepts only jobs of user %d", c.uid)
	}
	user, err := c.cfg.Users.LookupUID(uid)
	if err != nil {
		if errs.KindOf(err) != errs.NotFound {
			return nss.User{}, 0, err
		}
		return nss.User{}, 0, refuseField(errs.Invalid, fault.UnknownUser, "user_id", "this machine has no user %d", uid)
	}
	if c.uid != 0 {
		return user, user.GID, nil // a step without root privileges can't change its group
	}
	gid := user.GID
	switch {
	case d.GroupID.Set:
		gid = d.GroupID.Number
	case client.FromKernel && uid == client.UID:
		gid = client.GID // as after newgrp(1)
	}
	if gid == user.GID {
		return user, gid, nil
	}
	groups, err := c.cfg.Users.Groups(user)
	switch {
	case err != nil:
		return nss.User{}, 0, err
	case slices.Contains(groups, gid):
		return user, gid, nil
	case !d.GroupID.Set:
		return user, user.GID, nil // the client was a set-group-ID program
	}
	return nss.User{}, 0, refuseField(errs.Invalid, fault.InvalidGroupID, "group_id", "user %s is not in group %d", user, gid)
}

func (c *Controller) partitionOf(d *model.JobDesc) (*model.Partition, error) {
	for i := range c.cfg.Partitions {
		p := &c.cfg.Partitions[i]
		if p.Name != d.Partition.String() && (!d.Partition.Empty() || p.Flags&partitionDefault == 0) {
			continue
		}
		if p.StateUp != partitionUp {
			return nil, refuseField(errs.Unavailable, 2070, "partition", "%s is down", p.Name)
		}
		return p, nil
	}
	if d.Partition.Empty() {
		return nil, refuseField(errs.Invalid, fault.NoDefaultPartition, "partition",
			"missing, and the cluster has no default partition")
	}
	return nil, refuseField(errs.Invalid, fault.InvalidPartition, "partition", "there is no partition %.64q", d.Partition.String())
}

// refuseField returns an error about one field of a job. The text begins with
// the field's name, so that the gateway can report which part of the request
// caused the error.
func refuseField(kind errs.Kind, number int, field, format string, args ...any) error {
	return refuse(kind, number, "%s: %s", field, fmt.Sprintf(format, args...))
}

// checkSupported refuses fields that this controller does not support, if they
// would change how, when or where the job runs. If the controller ignored such
// a field, the job would not run as the user requested.
func checkSupported(d *model.JobDesc) error {
	for _, t := range []struct {
		field, feature string
		requested      bool
	}{
		{"array", "job arrays", !d.Array.Empty()},
		{"dependency", "dependencies", !d.Dependency.Empty()},
		{"reservation", "reservations", !d.Reservation.Empty()},
		{"licenses", "licenses", !d.Licenses.Empty()},
		{"container", "containers", !d.Container.Empty()},
		{"container_id", "containers", !d.ContainerID.Empty()},
		{"tres_per_job", "generic resources", !d.TRESPerJob.Empty()},
		{"tres_per_node", "generic resources", !d.TRESPerNode.Empty()},
		{"tres_per_socket", "generic resources", !d.TRESPerSocket.Empty()},
		{"tres_per_task", "generic resources", !d.TRESPerTask.Empty()},
		{"cpus_per_tres", "generic resources", !d.CPUsPerTRES.Empty()},
		{"memory_per_tres", "generic resources", !d.MemPerTRES.Empty()},
		{"constraints", "features", !d.Features.Empty()},
		{"batch_features", "features", !d.BatchFeatures.Empty()},
		{"cluster_constraint", "features", !d.ClusterFeatures.Empty()},
		{"burst_buffer", "burst buffers", !d.BurstBuffer.Empty()},
		{"crontab", "repeating jobs", d.Cron.Set != 0},
		{"x11", "X11 forwarding", d.X11 != 0},
		{"immediate", "immediate jobs", d.Immediate != 0},
		{"job_id", "job ids chosen by the client", d.JobID.Or(0) != 0},
		{"nodes", "more than one node", d.MinNodes.Or(1) > 1 && d.MaxNodes.Set},
		{"minimum_nodes", "more than one node", d.MinNodes.Or(1) > 1},
		{"clusters", "other clusters", !d.Clusters.Empty()},
		{"kill_warning_signal", "warning signals before the time limit", d.WarnSignal != 0},
		{"reboot", "a reboot before the job", d.Reboot.Or(0) != 0},
		{"excluded_nodes", "jobs that exclude a node", !d.ExcNodes.Empty()},
		{"overcommit", "more tasks than processors", d.Overcommit.Or(0) != 0},
		{"deadline", "deadlines", d.Deadline != 0},
		{"tasks_per_node", "more than one node", d.NTasksPerNode.Or(0) > 0 && d.NumTasks.Or(0) > uint32(d.NTasksPerNode.Number)},
	} {
		if t.requested {
			return refuseField(errs.Unsupported, fault.NotSupported, t.field, "this controller does not support %s", t.feature)
		}
	}
	return nil
}

// checkNodes refuses a job that requires a node other than this machine's.
func (c *Controller) checkNodes(d *model.JobDesc) error {
	for name := range model.Hosts(d.ReqNodes.String()) {
		if name != c.cfg.Node {
			return refuseField(errs.Invalid, fault.InvalidNodeName, "required_nodes", "there is no node %.64q", name)
		}
	}
	return nil
}

func checkScript(d *model.JobDesc) error {
	line, _, _ := strings.Cut(d.Script, "\n")
	switch {
	case d.Script == "":
		return refuseField(errs.Invalid, fault.NoScript, "script", "missing")
	case len(d.Script) > maxScript:
		return refuseField(errs.TooLarge, fault.PathTooLong, "script", "longer than %d bytes", maxScript)
	case !strings.HasPrefix(line, "#!") || strings.TrimSpace(line[2:]) == "":
		return refuseField(errs.Invalid, fault.NoScript, "script", "the first line must name an interpreter, such as #!/bin/sh")
	case strings.HasSuffix(line, "\r"):
		return refuseField(errs.Invalid, fault.NoScript, "script", "has DOS line endings; end lines with a line feed only")
	case strings.Contains(d.Script, "\x00"):
		return refuseField(errs.Invalid, fault.NoScript, "script", "contains a NUL")
	}
	return nil
}

func checkEnvironment(d *model.JobDesc) error {
	if len(d.Environment) == 0 {
		return refuseField(errs.Invalid, fault.NoEnvironment, "environment", "missing; at least one variable is needed")
	}
	size := 0
	for _, v := range d.Environment {
		size += len(v)
		if i := strings.IndexByte(v, '='); i < 1 || strings.Contains(v, "\x00") {
			return refuseField(errs.Invalid, fault.NoEnvironment, "environment", "%.40q is not NAME=value", v)
		}
	}
	if size > maxEnvironment {
		return refuseField(errs.TooLarge, fault.PathTooLong, "environment", "longer than %d bytes", maxEnvironment)
	}
	return nil
}

func checkPaths(d *model.JobDesc) error {
	if d.WorkDir.Empty() || !filepath.IsAbs(d.WorkDir.String()) {
		return refuseField(errs.Invalid, fault.NoWorkDir, "current_working_directory", "must be an absolute path")
	}
	type path struct{ field, path string }
	paths := []path{
		{"current_working_directory", d.WorkDir.String()}, {"standard_output", d.StdOut.String()},
		{"standard_error", d.StdErr.String()}, {"standard_input", d.StdIn.String()},
	}
	for _, arg := range d.Argv {
		paths = append(paths, path{"argv", arg})
	}
	for _, p := range paths {
		if len(p.path) > maxPath {
			return refuseField(errs.Invalid, fault.PathTooLong, p.field, "longer than %d bytes", maxPath)
		}
		if strings.Contains(p.path, "\x00") {
			return refuseField(errs.Invalid, fault.PathTooLong, p.field, "contains a NUL")
		}
	}
	return nil
}

// checkTexts limits the length of a job's texts, such as its name and comments.
// The controller stores them with the job, includes them in lists of jobs, and
// sends them to the accounting daemon.
func checkTexts(d *model.JobDesc) error {
	for _, t := range []struct {
		field, text string
		limit       int
	}{
		{"name", d.Name.String(), maxName}, {"account", d.Account.String(), maxName}, {"qos", d.QOS.String(), maxName}, {"wckey", d.WCKey.String(), maxName},
		{"allocation_node_list", d.AllocNode.String(), maxName}, {"mail_user", d.MailUser.String(), maxName}, {"mcs_label", d.MCSLabel.String(), maxName},
		{"network", d.Network.String(), maxName}, {"required_nodes", d.ReqNodes.String(), maxName},
		{"comment", d.Comment.String(), maxComment}, {"admin_comment", d.AdminComment.String(), maxComment}, {"extra", d.Extra.String(), maxComment},
	} {
		if len(t.text) > t.limit {
			return refuseField(errs.TooLarge, fault.PathTooLong, t.field, "longer than %d bytes", t.limit)
		}
	}
	return nil
}

// need returns the resources that the job needs. The number of CPUs is at least
// the number of tasks times the CPUs per task. The memory is the requested
// memory per CPU times the number of CPUs, or the requested total.
func (c *Controller) need(d *model.JobDesc) (queue.Resources, error) {
	tasks, cpusPerTask := taskCount(d), d.CPUsPerTask.Or(1)
	if tasks == 0 || tasks > maxTasks {
		return queue.Resources{}, refuseField(errs.Invalid, fault.BadTaskCount, "tasks",
			"%d is out of range, 1 to %d", tasks, maxTasks)
	}
	if cpusPerTask == 0 {
		return queue.Resources{}, refuseField(errs.Invalid, fault.InvalidCPUCount, "cpus_per_task", "must be at least 1")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	total := c.queue.Total()
	need := queue.Resources{CPUs: max(uint64(tasks)*uint64(cpusPerTask), uint64(d.MinCPUs.Or(0)), uint64(d.MinCPUsPerNode.Or(0)))}
	if d.Shared == model.Some[uint16](0) {
		need.CPUs = max(need.CPUs, total.CPUs) // exclusive use of the node
	}
	if m := d.MinMemory; m.Set {
		amount := m.Number &^ model.MemPerCPU
		switch {
		case amount == 0:
			need.Memory = total.Memory // by convention 0 means all memory
		case amount > 1<<40:
			return queue.Resources{}, refuseField(errs.Invalid, fault.InvalidTaskMemory, memoryField(d),
				"%d MiB is more than a job can request", amount)
		case m.Number&model.MemPerCPU != 0:
			need.Memory = amount * need.CPUs
		default:
			need.Memory = amount
		}
	}
	if err := c.queue.Fits(need); errors.Is(err, queue.ErrExceedsMachine) {
		return queue.Resources{}, refuseField(errs.Invalid, fault.NodeConfig, exceedingField(d, need, total), "%v", err)
	}
	return need, nil
}

// taskCount returns the number of tasks. If the job specifies only the number of
// tasks on each node, that is the number on its only node.
func taskCount(d *model.JobDesc) uint32 { return d.NumTasks.Or(max(1, uint32(d.NTasksPerNode.Or(1)))) }

// memoryField returns the name of the field in which the client requested the
// job's memory.
func memoryField(d *model.JobDesc) string {
	if d.MinMemory.Number&model.MemPerCPU != 0 {
		return "memory_per_cpu"
	}
	return "memory_per_node"
}

// exceedingField returns the name of the field that makes need exceed total.
func exceedingField(d *model.JobDesc, need, total queue.Resources) string {
	cpusPerTask := uint64(d.CPUsPerTask.Or(1))
	switch {
	case need.CPUs <= total.CPUs:
		return memoryField(d)
	case cpusPerTask > total.CPUs:
		return "cpus_per_task"
	case uint64(taskCount(d))*cpusPerTask > total.CPUs && !d.NumTasks.Set:
		return "tasks_per_node"
	case uint64(taskCount(d))*cpusPerTask > total.CPUs:
		return "tasks"
	case uint64(d.MinCPUs.Or(0)) > total.CPUs:
		return "minimum_cpus"
	}
	return "minimum_cpus_per_node"
}

// timeLimit returns a job's time limit in minutes: the requested limit,
// otherwise the partition's default, and otherwise the partition's maximum.
func timeLimit(limit model.Opt[uint32], p *model.Partition) (model.Opt[uint32], error) {
	if !limit.Set && !limit.Infinite {
		limit = p.DefaultTime
	}
	if !limit.Set && !limit.Infinite {
		limit = p.MaxTime
	}
	maxTime := p.MaxTime
	switch {
	case limit.Set && limit.Number == 0:
		limit = maxTime // by convention 0 means the maximum
	case maxTime.Set && (limit.Infinite || limit.Number > maxTime.Number):
		return limit, refuseField(errs.Invalid, fault.InvalidTimeLimit, "time_limit",
			"partition %s allows at most %d minutes", p.Name, maxTime.Number)
	}
	return limit, nil
}

// jobFromDesc returns the job as clients see it. It sets only values that
// follow from the request and the current time.
func (c *Controller) jobFromDesc(d *model.JobDesc, now time.Time) model.Job {
	m := model.Job{
		Name: d.Name.String(), Account: d.Account.String(), AdminComment: d.AdminComment.String(), Comment: d.Comment.String(), Extra: d.Extra.String(),
		QOS: d.QOS.String(), WCKey: d.WCKey.String(),
		AllocNode: d.AllocNode.String(), AllocSID: d.AllocSID.Or(0), BatchFlag: 1, Cluster: c.cfg.Cluster, Detailed: true,
		State: model.JobPending, SubmitTime: model.At(now),
		EligibleTime: max(model.At(now), d.BeginTime), AccrueTime: model.At(now),
		Priority: d.Priority.Or(1), Nice: d.Nice.Or(model.NiceOffset), SiteFactor: model.NiceOffset,
		MailType: d.MailType.Or(0), MailUser: d.MailUser.String(), MCSLabel: d.MCSLabel.String(), Network: d.Network.String(), Deadline: d.Deadline,
		NumTasks: taskCount(d), CPUsPerTask: d.CPUsPerTask, MinCPUsPerNode: max(d.MinCPUsPerNode.Or(1), d.CPUsPerTask.Or(1)), NumNodes: 1, MaxNodes: 1,
		MinMemory: d.MinMemory.Or(0), MinTmpDisk: d.MinTmpDisk.Or(0), ReqNodes: d.ReqNodes.String(), Contiguous: d.Contiguous.Or(0),
		NTasksPerNode: d.NTasksPerNode, Requeue: d.Requeue.Or(1), Shared: d.Shared,
		StdOut: cmp.Or(d.StdOut.String(), defaultOutput), StdErr: d.StdErr.String(), StdIn: d.StdIn.String(),
		WorkDir:    d.WorkDir.String(),
		SubmitLine: d.SubmitLine.String()[:min(len(d.SubmitLine.String()), maxComment)], // truncated: it is only informative, and a shell allows much longer lines
		// Slurm's commands would print a large number for some of these fields
		// if they were unset. So a field that would be unset is 0 instead.
		TimeMin: model.Some(d.TimeMin.Or(0)), DelayBoot: model.Some(d.DelayBoot.Or(0)), SegmentSize: model.Some[uint16](0),
		MemUpdateDelay: model.Some[uint16](0), MemUpdateMargin: model.Some[uint16](0),
	}
	if m.Priority == 0 {
		m.StateReason = reasonHeldUser
	}
	if len(d.Argv) > 0 {
		m.Command = d.Argv[0]
	}
	return m
}
