package handlers

import (
	"cmp"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// defaultJobFlags are the flags of a job search if the client sets none.
const defaultJobFlags = model.JobFilterDuplicates | model.JobFilterNoTruncation

// getAccountingJobs returns recorded jobs. A request without a query selects
// all jobs. A request with a query selects only jobs of this cluster, unless
// the query names other clusters.
func (h *handler) getAccountingJobs(c *rest.Call, p *api.AccountingJobsParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	filter := p.AccountingJobFilter
	if filter.QOS, err = qosNumbers(r, filter.QOS, "qos"); err != nil {
		return err
	}
	if filter.Flags == 0 {
		filter.Flags = defaultJobFlags
	}
	if !c.Selective() && c.Lenient(api.LastOfEachNumber) {
		filter.Flags &^= model.JobFilterDuplicates
	}
	if len(filter.States) > 0 && !c.Lenient(api.StatesAtStart) {
		completePeriod(&filter, model.At(c.Started()))
	}
	filter.CPUsMin, filter.CPUsMax = completeRange(filter.CPUsMin, filter.CPUsMax)
	filter.NodesMin, filter.NodesMax = completeRange(filter.NodesMin, filter.NodesMax)
	filter.TimeLimitMin, filter.TimeLimitMax = completeRange(filter.TimeLimitMin, filter.TimeLimitMax)
	if len(filter.Clusters) == 0 && h.Cluster != "" && c.Selective() {
		filter.Clusters = []string{h.Cluster}
	}
	if filter.Clusters, err = h.spellClusters(c, filter.Clusters); err != nil {
		return err
	}
	// The daemon selects users and groups only by id, and not every gateway can
	// resolve names to ids. If the client sent names, the gateway compares them
	// with the names in the records instead.
	users, groups := extractNames(&filter.UserIDs), extractNames(&filter.GroupIDs)
	if filter.AssocIDs == nil && users != nil && h.seesAssociations(c, users) {
		filter.AssocIDs = h.associationsOf(c, users, filter.Clusters)
	}
	// If slurmdbd gets names of reservations, its query fails, and it answers as
	// if there were none.
	reservations := filter.Reservations
	filter.Reservations = nil
	// slurmdbd also ignores the exit code. scheddbd selects jobs by their wait(2)
	// status, where 0 means all jobs.
	filter.ExitCode = p.ReturnCode.Or(0) << 8
	wants := func(j *model.AccountingJob) bool {
		return inList(users, j.User, j.UserID, h.Users.User) && inList(groups, "", j.GroupID, h.Users.Group) &&
			(reservations == nil || slices.Contains(reservations, j.Reservation)) &&
			(!p.ReturnCode.Set || api.ReturnCode(j.ExitCode) == p.ReturnCode)
	}
	if after, limit := c.Page(); limit > 0 {
		page := model.AccountingJobPage{AccountingJobFilter: filter, Limit: uint32(limit) + 1} // one more, to see whether there is a next page
		if page.After, err = parseRecordedJobKey(after); err != nil {
			return err
		}
		return h.sendAccountingJobs(c, r, h.pagesOf(c, page, limit, wants))
	}
	return h.sendAccountingJobs(c, r, func(each func(*model.AccountingJob) error) error {
		return recordsOf[model.AccountingJob](h, c, filter)(func(j *model.AccountingJob) error {
			if !wants(j) {
				return nil
			}
			return each(j)
		})
	})
}

// seesAssociations reports whether all elements of users are names, and the daemon
// certainly shows the request's user all associations of these users. It may hide
// associations from others than operators and administrators (PrivateData), all or only
// some.
func (h *handler) seesAssociations(c *rest.Call, users []string) (sees bool) {
	if !slices.ContainsFunc(users, func(name string) bool { return name != c.User() }) {
		return true
	}
	if slices.ContainsFunc(users, func(name string) bool { return isID(name) || !auth.PosixName(name) }) {
		return false
	}
	err := recordsOf[model.User](h, c, usersNamed(c.User()))(func(u *model.User) error {
		sees = u.AdminLevel >= operator
		return nil
	})
	return sees && err == nil
}

// associationsOf returns the numbers of the associations of these users, also of
// deleted ones, and 0, the number for jobs without an association. slurmdbd removes
// an association of which it has a job only by marking it as deleted. The names of users
// in its records are those of their associations. Their uids may be others, or 0 if
// slurmdbd has not received the start of a job.
//
// All associations of the request's user may be hidden if all are deleted. Then
// associationsOf returns nil.
func (h *handler) associationsOf(c *rest.Call, users, clusters []string) (ids []string) {
	filter := model.AssocFilter{Users: users, Clusters: clusters,
		Flags: model.AssocWithDeleted | model.AssocRawQOS | model.AssocWithoutParentInfo | model.AssocWithoutParentLimits}
	err := recordsOf[model.Association](h, c, filter)(func(a *model.Association) error {
		ids = append(ids, strconv.FormatUint(uint64(a.ID), 10))
		return nil
	})
	if err != nil || ids == nil {
		return nil
	}
	return append(ids, "0")
}

// completePeriod completes the period of a filter that has states. slurmdbd would
// let a period without a start begin now, and one without an end end when it
// begins. Then no job has ended in it.
func completePeriod(f *model.AccountingJobFilter, now model.Time) {
	if f.UsageStart == 0 && f.UsageEnd == 0 {
		f.Flags |= model.JobFilterNoDefaultUsage
		return
	}
	f.UsageStart, f.UsageEnd = max(f.UsageStart, 1), cmp.Or(f.UsageEnd, now)
}

// completeRange completes a range that has only a minimum or only a maximum.
// slurmdbd would treat a lone minimum as the exact value, and ignore a lone
// maximum.
func completeRange(low, high uint32) (uint32, uint32) {
	switch {
	case low == 0 && high == 0:
		return 0, 0
	case high == 0:
		high = math.MaxUint32
	}
	return max(low, 1), high
}

// extractNames checks whether a list in the filter contains a name. If so,
// extractNames removes the whole list from the filter and returns it.
func extractNames(list *[]string) (names []string) {
	if slices.ContainsFunc(*list, func(s string) bool { return !isID(s) }) {
		names, *list = *list, nil
	}
	return names
}

// isID reports whether an element of a list of users or groups is an id.
func isID(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// inList reports whether a user or group is in a list of names and ids. If the
// list is nil, it returns true.
func inList(list []string, name string, number uint32, nameOf func(uint32) string) bool {
	if list == nil {
		return true
	}
	if name == "" {
		name = nameOf(number)
	}
	return slices.Contains(list, name) || slices.Contains(list, strconv.FormatUint(uint64(number), 10))
}

// getAccountingJob returns one job. The job has several records if it is an
// array, or if its number was reused.
func (h *handler) getAccountingJob(c *rest.Call, p *api.AccountingJobParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	filter := model.AccountingJobFilter{Flags: defaultJobFlags, Steps: []model.SelectedStep{p.Job}}
	if h.Cluster != "" {
		filter.Clusters = []string{h.Cluster}
	}
	return h.sendAccountingJobs(c, r, func(each func(*model.AccountingJob) error) error {
		found := false
		list := func(matches func(*model.AccountingJob) bool) error {
			return recordsOf[model.AccountingJob](h, c, filter)(func(j *model.AccountingJob) error {
				if !matches(j) {
					return nil
				}
				found = true
				return each(j)
			})
		}
		err := list(func(*model.AccountingJob) bool { return true })
		if part := p.Job; err == nil && !found && !part.Step.Step.Set && (part.ArrayTaskID.Set || part.HetOffset.Set) {
			// The daemon can't find a component of a heterogeneous job, or a
			// task of an array that is still pending. So the gateway requests
			// the whole job, and selects the component or task itself.
			filter.Steps = []model.SelectedStep{{Step: model.StepID{JobID: part.Step.JobID}}}
			err = list(func(j *model.AccountingJob) bool { return isPart(j, part) })
		}
		if err == nil && !found {
			err = errs.New(errs.NotFound, "there is no job %s in the records", c.Param("job_id")).WithSource(rest.InPath + "job_id")
		}
		return err
	})
}

// isPart reports whether j is the record of the selected task or component. All
// pending tasks of an array share one record.
func isPart(j *model.AccountingJob, selected model.SelectedStep) bool {
	if selected.HetOffset.Set {
		return j.HetJobID == selected.Step.JobID && j.HetJobOffset == selected.HetOffset
	}
	return j.ArrayTaskID == selected.ArrayTaskID || api.InTaskList(j.ArrayTasks, selected.ArrayTaskID.Number)
}

func (h *handler) sendAccountingJobs(c *rest.Call, r *api.Records, list schema.Stream[model.AccountingJob]) error {
	body := api.AccountingJobsAnswer{Envelope: c.Envelope()}
	page := rest.Paged(c, &body.Envelope, recordedJobKey, list)
	body.Jobs = rowsOf(page, func(j *model.AccountingJob) api.AccountingJobRow {
		return api.AccountingJobRow{AccountingJob: j, Records: r, Now: model.At(c.Started())}
	})
	return rest.Send(c, http.StatusOK, api.AccountingJobs, &body)
}

// postAccountingJob changes the record of a job.
func (h *handler) postAccountingJob(c *rest.Call, p *api.NamedAccountingJobParams) error {
	body, err := rest.ReadBodyInto(c, api.JobModifyBody, api.NewJobChange())
	if err != nil {
		return err
	}
	return h.modifyJobs(c, []model.JobSelection{p.Job}, []string{c.Param("job_id")}, body, "#", rest.InPath+"job_id")
}

// postAccountingJobs changes the records of jobs.
func (h *handler) postAccountingJobs(c *rest.Call, _ *api.NoParams) error {
	body, err := rest.ReadBody(c, api.JobsModifyBody)
	if err != nil {
		return err
	}
	jobs, err := body.Selections()
	switch {
	case err != nil:
		return errs.New(errs.Invalid, "%v", err).WithSource("#/job_id_list")
	case len(jobs) == 0:
		return errs.New(errs.Invalid, "the body names no job, which would mean all jobs: nothing was changed").
			WithSource("#/job_id_list")
	case body.Change == nil:
		return errs.New(errs.Invalid, "the body has no field to change").WithSource("#/job_rec")
	}
	return h.modifyJobs(c, jobs, body.Jobs, body.Change, "#/job_rec", "#/job_id_list")
}

// modifyJobs changes the records of jobs of this cluster. It selects the jobs
// by number and cluster, because other clusters use the same job numbers.
func (h *handler) modifyJobs(c *rest.Call, jobs []model.JobSelection, names []string, change *api.JobChange, at, source string) error {
	if len(change.Limits) == 0 && reflect.DeepEqual(*change.AccountingJob, model.BlankAccountingJob()) {
		return errs.New(errs.Invalid, "the body has no field to change").WithSource(at)
	}
	if h.Cluster == "" {
		return errs.New(errs.Unsupported, "the gateway's configuration names no cluster, and jobs of other clusters have the same numbers")
	}
	changed, err := h.edit(c, strings.Join(names, " "), func(tx *transaction) ([]string, error) {
		record := *change.AccountingJob
		if len(change.Limits) > 0 {
			r, err := h.namesFrom(tx.List, model.QOSFilter{})
			if err != nil {
				return nil, err
			}
			if err := api.SetLimits(r, &record, nil, change.Limits, false); err != nil {
				return nil, errs.New(errs.Invalid, "%v", err).WithSource(at + "/tres/allocated")
			}
		}
		var modified []string
		for i, job := range jobs {
			filter := h.jobFilter(model.JobFilterNoDefaultUsage, job)
			changed, err := tx.Change(model.Modify[model.AccountingJob]{Filter: filter, Record: record})
			if err == nil && len(changed) == 0 {
				err = errs.New(errs.NotFound, "there is no such job")
			}
			if err != nil {
				return nil, annotateUnchanged(annotateNamed(err, "job", names[i], source))
			}
			modified = append(modified, changed...)
		}
		return modified, nil
	})
	return h.answerRemoval(c, api.JobModified, changed, err)
}
