package dbd

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// maxJobs is the most jobs of one answer, which is made in memory.
const maxJobs = 50_000

// jobs answers AccountingGetJobs (DBD_GET_JOBS_COND). Everybody sees every job, as with the controller.
func (d *Daemon) jobs(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.GetAccountingJobs
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	f := &q.AccountingJobFilter
	if err := known(f); err != nil {
		return 0, nil, err
	}
	list := []model.AccountingJob{}
	err := d.store.Jobs(ctx, f, func(cluster string, j *model.Job) error {
		if !matches(f, j) {
			return nil
		}
		if len(list) == maxJobs {
			return errs.New(errs.Invalid, "that is more than %d jobs", maxJobs).WithHint("narrow it by time, user or name")
		}
		list = append(list, past(cluster, j))
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	if f.Flags&model.JobFilterDuplicates == 0 {
		list = latest(list)
	}
	return message.AccountingGotJobs, &message.AccountingJobs{Listed: listed(list)}, nil
}

// known refuses filters that are not understood here: a list that was not narrowed as asked would
// be a wrong answer.
func known(f *model.AccountingJobFilter) error {
	for name, set := range map[string]bool{
		"associations": len(f.AssocIDs) > 0, "constraints": len(f.Constraints) > 0, "QOS": len(f.QOS) > 0, "reservations": len(f.Reservations)+len(f.ReservationIDs) > 0,
		"how they were scheduled": f.JobFlags.Set && f.JobFlags.Number != 1, "runaway jobs": f.Flags&model.JobFilterRunaway != 0,
	} {
		if set {
			return errs.New(errs.Unsupported, "this accounting daemon does not look jobs up by %s", name)
		}
	}
	return nil
}

// matches is what of a filter the database does not do.
func matches(f *model.AccountingJobFilter, j *model.Job) bool {
	decimal := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	within := func(n, least, most uint32) bool { return n >= least && (most == 0 || n <= most) }
	switch {
	case !in(f.Accounts, j.Account), !in(f.Names, j.Name), !in(f.Partitions, j.Partition), !in(f.WCKeys, j.WCKey),
		!in(f.UserIDs, decimal(j.UserID)), !in(f.GroupIDs, decimal(j.GroupID)),
		!in(f.States, decimal(uint32(j.State&0xff))), !in(f.Reasons, decimal(j.StateReason)),
		!within(j.NumCPUs, f.CPUsMin, f.CPUsMax), !within(j.NumNodes, f.NodesMin, f.NodesMax),
		!within(j.TimeLimit.Or(^uint32(0)), f.TimeLimitMin, f.TimeLimitMax),
		f.ExitCode != 0 && f.ExitCode != j.ExitCode:
		return false
	}
	if len(f.Steps) > 0 && !slices.ContainsFunc(f.Steps, func(s model.SelectedStep) bool { return named(&s, j) }) {
		return false
	}
	if f.UsedNodes == "" {
		return true
	}
	for host := range model.Hosts(j.Nodes) {
		if model.HostlistHas(f.UsedNodes, host) {
			return true
		}
	}
	return false
}

// named tells whether s names j: by its number, or by its array's and perhaps its task's.
func named(s *model.SelectedStep, j *model.Job) bool {
	id := s.Step.JobID
	switch {
	case s.ArrayTaskID.Set:
		return j.ArrayJobID == id && j.ArrayTaskID == s.ArrayTaskID
	case s.HetOffset.Set:
		return j.HetJobID == id && j.HetJobOffset == s.HetOffset.Number
	}
	return j.StepID.JobID == id || j.ArrayJobID == id || j.HetJobID == id
}

// latest leaves of jobs with one number the one that was submitted last.
func latest(list []model.AccountingJob) []model.AccountingJob {
	type key struct {
		cluster string
		id      uint32
	}
	last := map[key]model.Time{}
	for i := range list {
		k := key{list[i].Cluster, list[i].JobID}
		last[k] = max(last[k], list[i].SubmitTime)
	}
	return slices.DeleteFunc(list, func(j model.AccountingJob) bool { return j.SubmitTime < last[key{j.Cluster, j.JobID}] })
}

// past is a job as it is kept.
func past(cluster string, j *model.Job) model.AccountingJob {
	return model.AccountingJob{
		Account: j.Account, AdminComment: j.AdminComment, AllocNodes: allocated(j), ArrayJobID: j.ArrayJobID, ArrayMaxTasks: j.ArrayMaxTasks,
		ArrayTaskID: j.ArrayTaskID, ArrayTasks: j.ArrayTasks, Cluster: cluster, Constraints: j.Features, Container: j.Container,
		DerivedExitCode: j.DerivedExitCode, DerivedExitText: j.Comment, Elapsed: elapsed(j), EligibleTime: j.EligibleTime, EndTime: j.EndTime,
		ExitCode: j.ExitCode, Extra: j.Extra, FailedNode: j.FailedNode, GroupID: j.GroupID, JobID: j.StepID.JobID, Name: j.Name,
		Licenses: j.Licenses, MCSLabel: j.MCSLabel, Nodes: j.Nodes, HetJobID: j.HetJobID, HetJobOffset: hetOffset(j), Partition: j.Partition,
		Priority: model.Some(j.Priority), ReqCPUs: j.NumCPUs, ReqMem: j.MinMemory, ReqUserID: nobody, RestartCnt: j.RestartCnt,
		ShowFull: 1, StartTime: j.StartTime, State: j.State, StateReason: j.StateReason, Steps: []model.AccountingStep{},
		StdErr: j.StdErr, StdIn: j.StdIn, StdOut: j.StdOut, SubmitTime: j.SubmitTime, SubmitLine: j.SubmitLine, SystemComment: j.SystemComment,
		TimeLimit: j.TimeLimit, TRESAlloc: byNumber(j.TRESAlloc), TRESReq: byNumber(j.TRESReq), UserID: j.UserID, User: j.UserName,
		WCKey: j.WCKey, WorkDir: j.WorkDir,
	}
}

// nobody is the number of who has ended a job that nobody has ended.
const nobody = 1<<32 - 1

func hetOffset(j *model.Job) model.Opt[uint32] {
	if j.HetJobID == 0 {
		return model.Opt[uint32]{}
	}
	return model.Some(j.HetJobOffset)
}

func allocated(j *model.Job) uint32 {
	if j.Nodes == "" {
		return 0
	}
	return j.NumNodes
}

func elapsed(j *model.Job) uint32 {
	if j.StartTime == 0 || j.EndTime < j.StartTime || !j.State.Ended() {
		return 0
	}
	return uint32(j.EndTime - j.StartTime)
}

// byNumber makes "cpu=2,mem=1G" what records have: "1=2,2=1024". What has no number here is left out.
func byNumber(s string) string {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		name, amount, _ := strings.Cut(part, "=")
		for _, t := range resources {
			if t.Type != name {
				continue
			}
			if n, ok := scaled(amount); ok {
				list = append(list, strconv.FormatUint(uint64(t.ID), 10)+"="+strconv.FormatUint(n, 10))
			}
		}
	}
	return strings.Join(list, ",")
}

// scaled reads an amount; memory is in MiB, and has a letter when it is shown in others.
func scaled(s string) (uint64, bool) {
	shift := 0
	if i := len(s) - 1; i >= 0 {
		if at := strings.IndexByte("MGTP", s[i]); at >= 0 {
			s, shift = s[:i], 10*at
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f >= 1<<50 {
		return 0, false
	}
	return uint64(f * float64(uint64(1)<<shift)), true
}

// Jobs gives each job that was there between the filter's times, in its clusters, to each.
func (s *Store) Jobs(ctx context.Context, f *model.AccountingJobFilter, each func(cluster string, j *model.Job) error) error {
	where, args := []string{"1"}, []any{}
	if len(f.Clusters) > 0 {
		where = append(where, "cluster IN (?"+strings.Repeat(", ?", len(f.Clusters)-1)+")")
		for _, name := range f.Clusters {
			args = append(args, name)
		}
	}
	begin, end := "submit_time", "CASE WHEN ended THEN end_time ELSE 9223372036854775807 END"
	if f.Flags&model.JobFilterNoDefaultUsage != 0 {
		end = "submit_time"
	}
	if f.UsageStart != 0 {
		where, args = append(where, end+" >= ?"), append(args, int64(f.UsageStart))
	}
	if f.UsageEnd != 0 {
		where, args = append(where, begin+" <= ?"), append(args, int64(f.UsageEnd))
	}
	rows, err := s.db.QueryContext(ctx, "SELECT cluster, protocol, record FROM job WHERE "+strings.Join(where, " AND ")+" ORDER BY submit_time, cluster, job_id", args...)
	if err != nil {
		return unreadable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var cluster string
		var v uint16
		var record []byte
		if err := rows.Scan(&cluster, &v, &record); err != nil {
			return unreadable(err)
		}
		var m message.RecordJobs
		if err := message.DecodeBody(codec.Version(v), message.AccountingRecordJobs, record, &m); err != nil {
			return unreadable(err)
		}
		for i := range m.Jobs {
			if err := each(cluster, &m.Jobs[i]); err != nil {
				return err
			}
		}
	}
	return unreadable(rows.Err())
}

// Clusters are those of which there is a job.
func (s *Store) Clusters(ctx context.Context) (names []string, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT DISTINCT cluster FROM job ORDER BY cluster")
	if err != nil {
		return nil, unreadable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, unreadable(err)
		}
		names = append(names, name)
	}
	return names, unreadable(rows.Err())
}

// unreadable is the error of a database that can't be read.
func unreadable(err error) error {
	return errs.Wrap(err, errs.Unavailable, "the database can't be read")
}
