package dbd

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleJobs answers AccountingGetJobs (DBD_GET_JOBS_COND).
func (d *Daemon) handleJobs(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.GetAccountingJobs
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	return d.sendJobs(ctx, r, &q.AccountingJobFilter, func(owner model.Opt[uint32], visit visitor) error {
		return d.store.Jobs(ctx, &q.AccountingJobFilter, owner, visit)
	})
}

// handleJobPage answers AccountingGetJobPage.
func (d *Daemon) handleJobPage(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.GetAccountingJobPage
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	return d.sendJobs(ctx, r, &q.AccountingJobFilter, func(owner model.Opt[uint32], visit visitor) error {
		return d.store.JobPage(ctx, &q.AccountingJobPage, owner, visit)
	})
}

// sendJobs returns the answer with the jobs that the function find passes to its
// argument visit. The argument owner of find is the user whose jobs the client
// may see; if it is not set, the client may see all jobs.
func (d *Daemon) sendJobs(ctx context.Context, r *server.Request, f *model.AccountingJobFilter,
	find func(owner model.Opt[uint32], visit visitor) error) (message.Type, message.Body, error) {
	if err := checkFilter(f); err != nil {
		return 0, nil, err
	}
	slot, err := d.queries.Acquire(ctx, r.Identity.UID)
	if err != nil {
		return 0, nil, errs.Wrap(err, errs.TooMany, "too many concurrent queries")
	}
	defer slot.Release()
	var answer message.AccountingJobs
	var body message.Body
	owner := d.privacy.OwnerFilter(r.Identity.UID, conf.PrivateJobs)
	err = find(owner, func(n int, next func() (string, *model.Job, error)) error {
		var record model.AccountingJob
		answer.Records.Len = n
		answer.Records.Pull = func() (*model.AccountingJob, error) {
			cluster, j, err := next()
			if err != nil {
				return nil, err
			}
			record = accountingJob(cluster, j)
			if f.Flags&(model.JobFilterNoTruncation|model.JobFilterNoDefaultUsage) == 0 {
				truncate(&record, f.UsageStart, f.UsageEnd)
			}
			return &record, nil
		}
		body, err = r.Spool(message.AccountingGotJobs, &answer)
		return err
	})
	return message.AccountingGotJobs, body, err
}

// checkFilter returns an error if this daemon does not support a filter in f.
// If the daemon ignored the filter, the answer would be wrong.
func checkFilter(f *model.AccountingJobFilter) error {
	for name, set := range map[string]bool{
		"jobs by association":     len(f.AssocIDs) > 0 && !slices.Contains(f.AssocIDs, "0"), // the number is 0 in all records
		"jobs by constraint":      len(f.Constraints) > 0,
		"jobs by QOS":             len(f.QOS) > 0,
		"jobs by reservation":     len(f.Reservations)+len(f.ReservationIDs) > 0,
		"jobs by scheduling flag": f.JobFlags.Set,
		"runaway jobs":            f.Flags&model.JobFilterRunaway != 0,
	} {
		if set {
			return errs.New(errs.Unsupported, "this accounting daemon does not support selecting %s", name)
		}
	}
	return nil
}

// accountingJob returns the accounting record of a job.
func accountingJob(cluster string, j *model.Job) model.AccountingJob {
	a := model.AccountingJob{
		Account: j.Account, AdminComment: model.Text(j.AdminComment), AllocNodes: allocated(j), ArrayJobID: j.ArrayJobID,
		ArrayMaxTasks: j.ArrayMaxTasks, ArrayTaskID: j.ArrayTaskID, ArrayTasks: j.ArrayTasks, Cluster: cluster,
		Constraints: j.Features, Container: j.Container, DerivedExitCode: j.DerivedExitCode,
		DerivedExitText: model.Text(j.Comment), Elapsed: elapsed(j, model.At(time.Now())), EligibleTime: j.EligibleTime, EndTime: j.EndTime,
		ExitCode: j.ExitCode, Extra: model.Text(j.Extra), FailedNode: j.FailedNode, GroupID: j.GroupID,
		JobID: j.StepID.JobID, Name: j.Name, Licenses: j.Licenses, MCSLabel: j.MCSLabel, Nodes: j.Nodes,
		HetJobID: j.HetJobID, HetJobOffset: hetOffset(j), Partition: j.Partition,
		Priority: model.Some(j.Priority), ReqCPUs: j.NumCPUs, ReqMem: j.MinMemory, ReqUserID: j.Run.CancelledBy.Or(notCancelled),
		RestartCnt: j.RestartCnt, ShowFull: 1, StartTime: j.StartTime, State: j.State,
		StateReason: j.StateReason, Steps: batchSteps(j), StdErr: j.StdErr, StdIn: j.StdIn,
		StdOut: j.StdOut, SubmitTime: j.SubmitTime, SubmitLine: j.SubmitLine, SystemComment: model.Text(j.SystemComment),
		TimeLimit: j.TimeLimit, TRESAlloc: tresByID(j.TRESAlloc), TRESReq: tresByID(j.TRESReq),
		UserID: j.UserID, User: j.UserName, WCKey: model.Text(j.WCKey), WorkDir: j.WorkDir,
	}
	addCPUTime(&a)
	return a
}

// truncate truncates the times of a job to those from start to end, which may be
// 0 for no limit.
func truncate(j *model.AccountingJob, start, end model.Time) {
	if j.StartTime != 0 {
		j.StartTime = max(j.StartTime, start)
	}
	switch {
	case j.EndTime == 0 && j.Elapsed != 0: // it runs
		now := model.At(time.Now())
		j.EndTime = min(now, cmp.Or(end, now))
	case end != 0:
		j.EndTime = min(j.EndTime, end)
	}
	if j.Elapsed != 0 {
		j.Elapsed = uint32(max(0, j.EndTime-j.StartTime))
	}
}

// notCancelled is the value of the field ReqUserID, the uid of the canceller,
// if no user has cancelled the job.
const notCancelled = 1<<32 - 1

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

// hasEnded reports whether a job, or a run after which the job was requeued, has
// ended.
func hasEnded(j *model.Job) bool { return j.State.Ended() || j.State&model.JobRequeued != 0 }

// elapsed returns for how many seconds a job has run until now.
func elapsed(j *model.Job, now model.Time) uint32 {
	end := now
	switch {
	case hasEnded(j):
		end = j.EndTime
	case j.State.Base() == model.JobPending:
		return 0
	}
	if j.StartTime == 0 {
		return 0
	}
	return uint32(max(0, end-j.StartTime))
}

// tresByID converts amounts of resources, such as "cpu=2,mem=1G", to the format
// of accounting records, such as "1=2,2=1024". This format uses numbers instead
// of names. tresByID omits resources that have no number.
func tresByID(s string) string {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		name, amount, _ := strings.Cut(part, "=")
		for _, t := range resources {
			if t.Type != name {
				continue
			}
			if n, ok := parseMiB(amount); ok {
				list = append(list, strconv.FormatUint(uint64(t.ID), 10)+"="+strconv.FormatUint(n, 10))
			}
		}
	}
	return strings.Join(list, ",")
}

// parseAmount parses an element of the result of tresByID.
func parseAmount(s string) (id uint32, count uint64, ok bool) {
	number, rest, found := strings.Cut(s, "=")
	n, err := strconv.ParseUint(number, 10, 32)
	if !found || err != nil {
		return 0, 0, false
	}
	count, err = strconv.ParseUint(rest, 10, 64)
	return uint32(n), count, err == nil
}

// parseMiB parses an amount with an optional suffix of M, G, T or P. The result
// is in MiB.
func parseMiB(s string) (uint64, bool) {
	shift := 0
	if i := len(s) - 1; i >= 0 {
		if unit := strings.IndexByte("MGTP", s[i]); unit >= 0 {
			s, shift = s[:i], 10*unit
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f >= 1<<50 {
		return 0, false
	}
	return uint64(f * float64(uint64(1)<<shift)), true
}
