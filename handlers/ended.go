package handlers

import (
	"net/http"
	"slices"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// awaitJob returns an error unless the job has reached the state that the request
// waits for, or the time is over. If the job has left the controller's memory,
// awaitJob returns its records from accounting, and known is false. If it is an
// array of which only some tasks have, awaitJob returns the records of these.
func (h *handler) awaitJob(c *rest.Call, p *api.JobParams, matches func(*model.Job) bool) (recorded []model.Job, known bool, err error) {
	begun := time.Now()
	ended, running, isArray := true, false, false
	var found []uint32
	_, err = h.Controller.Job(c.Context(), c.Credential(), p.Job.JobID, jobQuery(c, model.Query{Flags: p.Flags}), func(j *model.Job) error {
		if matches(j) {
			found = append(found, j.StepID.JobID)
			isArray = isArray || j.ArrayJobID == p.Job.JobID && !p.Job.ArrayTaskID.Set
			ended = ended && hasEnded(j.State)
			running = running || hasStarted(j.State)
		}
		return nil
	})
	if errs.KindOf(err) == errs.NotFound || err == nil && len(found) == 0 {
		if recorded, err = h.recordedJob(c, p.Job); len(recorded) == 0 || err != nil {
			return nil, false, err
		}
		c.Warn(rest.InPath+"job_id", "the controller no longer has this job; the answer is from accounting, which lacks some fields")
		for i := range recorded {
			if !hasEnded(recorded[i].State) { // the accounting daemon has not heard of its end yet
				return recorded, false, c.Hold()
			}
		}
		c.Reached(begun)
		return recorded, false, nil
	}
	switch {
	case err != nil:
		return nil, true, err
	case ended && isArray: // its first tasks may have ended long before the last
		recorded = h.otherTasks(c, p.Job, found)
	case !ended && (c.Until() != api.UntilRunning || !running):
		return nil, true, c.Hold()
	}
	c.Reached(begun)
	return recorded, true, nil
}

// otherTasks returns the records in accounting of the tasks of an array that the
// controller no longer has. The argument found is the ids of those that it has.
// Without accounting there are none.
func (h *handler) otherTasks(c *rest.Call, array model.JobSelection, found []uint32) []model.Job {
	recorded, err := h.recordedJob(c, array)
	if err != nil {
		c.Warn(rest.InPath+"job_id", "tasks that the controller no longer has are missing: %s", rest.Problem(err).Description)
		return nil
	}
	others := slices.DeleteFunc(recorded, func(j model.Job) bool { return slices.Contains(found, j.StepID.JobID) || !hasEnded(j.State) })
	if len(others) > 0 {
		c.Warn(rest.InPath+"job_id", "the controller no longer has %d of the tasks; they are from accounting, which lacks some fields", len(others))
	}
	return others
}

// hasEnded reports whether a job in this state has ended, will not run again, and
// has no nodes any more.
func hasEnded(s model.JobState) bool {
	return s.Ended() && s&(model.JobCompleting|model.JobRequeued|model.JobRequeueHold|model.JobRequeueFed|model.JobStageOut) == 0
}

// hasStarted reports whether a job in this state has run.
func hasStarted(s model.JobState) bool {
	return s.Base() == model.JobRunning && s&model.JobConfiguring == 0 || s.Base() == model.JobSuspended || s.Ended()
}

// recordedJob returns the records of a job in accounting, as far as they have the
// fields of a job of the controller. It returns none if the client may not read
// accounting records.
func (h *handler) recordedJob(c *rest.Call, job model.JobSelection) (jobs []model.Job, err error) {
	if h.Accounting == nil || h.Cluster == "" || !c.Permits(scope.SlurmdbRead) {
		return nil, nil
	}
	r, err := h.records(c)
	if err != nil {
		return nil, err
	}
	err = recordsOf[model.AccountingJob](h, c, h.jobFilter(defaultJobFlags, job))(func(j *model.AccountingJob) error {
		if len(jobs) == maxRecorded {
			return errs.New(errs.TooLarge, "the job has more than %d records in accounting", maxRecorded)
		}
		jobs = append(jobs, jobOfRecord(j, r))
		return nil
	})
	return jobs, err
}

// sendRecorded answers with jobs from accounting.
func (h *handler) sendRecorded(c *rest.Call, jobs []model.Job) error {
	return rest.Send(c, http.StatusOK, api.Jobs, &api.JobsAnswer{Jobs: h.jobRows(jobs), LastUpdate: model.At(time.Now()), Envelope: c.Envelope()})
}

// jobRows returns the rows of an answer with these jobs.
func (h *handler) jobRows(jobs []model.Job) schema.Stream[api.JobRow] {
	return rowsOf(streamOf(jobs), func(j *model.Job) api.JobRow { return api.JobRow{Job: j, Users: h.Users} })
}

// maxRecorded is the maximum number of records of one job from accounting that an
// answer about a job of the controller contains.
const maxRecorded = 1000

// jobOfRecord returns a job with the fields that accounting has.
func jobOfRecord(j *model.AccountingJob, r *api.Records) model.Job {
	return model.Job{
		StepID: model.StepID{JobID: j.JobID}, Account: j.Account, AdminComment: j.AdminComment.String(), ArrayJobID: j.ArrayJobID,
		ArrayTaskID: j.ArrayTaskID, ArrayTasks: j.ArrayTasks, AssocID: j.AssocID, Cluster: j.Cluster, Comment: j.DerivedExitText.String(),
		Container: j.Container, DerivedExitCode: j.DerivedExitCode, EligibleTime: j.EligibleTime, EndTime: j.EndTime, ExitCode: j.ExitCode,
		Extra: j.Extra.String(), FailedNode: j.FailedNode, GroupID: j.GroupID, HetJobID: j.HetJobID, HetJobOffset: j.HetJobOffset.Number,
		Licenses: j.Licenses, MCSLabel: j.MCSLabel, Name: j.Name, Nice: model.NiceOffset, Nodes: j.Nodes, Partition: j.Partition, PathRules: j.PathRules,
		Priority: j.Priority.Number, QOS: r.QOS[j.QOSID], Reservation: j.Reservation, RestartCnt: j.RestartCnt, SiteFactor: model.NiceOffset,
		StartTime: j.StartTime, State: j.State, StateReason: j.StateReason, StdErr: j.StdErr, StdIn: j.StdIn, StdOut: j.StdOut,
		SubmitLine: j.SubmitLine, SubmitTime: j.SubmitTime, SystemComment: j.SystemComment.String(), TimeLimit: j.TimeLimit,
		UserID: j.UserID, UserName: j.User, WCKey: j.WCKey.String(), WorkDir: j.WorkDir,
	}
}
