package handlers

import (
	"reflect"
	"strings"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

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
			if err := api.SetLimits(r, &record, nil, change.Limits); err != nil {
				return nil, errs.New(errs.Invalid, "%v", err).WithSource(at + "/tres/allocated")
			}
		}
		var all []string
		for i, job := range jobs {
			selected := model.SelectedStep{Step: model.StepID{JobID: job.JobID}, ArrayTaskID: job.ArrayTaskID, HetOffset: job.HetOffset}
			filter := model.AccountingJobFilter{Clusters: []string{h.Cluster}, Flags: model.JobFilterNoDefaultUsage,
				Steps: []model.SelectedStep{selected}}
			changed, err := tx.Change(model.Modify[model.AccountingJob]{Filter: filter, Record: record})
			if err == nil && len(changed) == 0 {
				err = errs.New(errs.NotFound, "there is no such job")
			}
			if err != nil {
				return nil, annotateUnchanged(annotateNamed(err, "job", names[i], source))
			}
			all = append(all, changed...)
		}
		return all, nil
	})
	return h.answerRemoval(c, api.JobModified, changed, err)
}
