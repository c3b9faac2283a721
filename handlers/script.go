package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"

	"schedrestd/api"
	"schedrestd/api/scope"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

// getJobScript shows the script of a job. The daemons decide who may see it: the
// job's user and operators. A job that the controller no longer has may have a script
// in accounting.
func (h *handler) getJobScript(c *rest.Call, p *api.ScriptParams) error {
	place, err := h.scripts.Acquire(c.Context(), semaphore.KeyFrom(c.Context()))
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "too many scripts are being sent")
	}
	defer place.Release() // when it has been sent
	id, err := h.numberOf(c.Context(), c, p.Job)
	var script string
	if err == nil {
		script, err = h.Controller.BatchScript(c.Context(), c.Credential(), id)
	}
	if err != nil && errs.KindOf(err) == errs.NotFound && h.Accounting != nil && h.Cluster != "" {
		recorded, found, recordErr := h.recordedScript(c, p.Job)
		if found || recordErr != nil {
			script, err = recorded, recordErr
		}
	}
	e, ok := errors.AsType[*errs.Error](err)
	if err == nil && script == "" || ok && e.Number == slurmerror.NoScript {
		return errs.New(errs.NotFound, "the job has no script, or it is no longer kept").WithNumber(slurmerror.NoScript).WithSource(rest.InPath + "job_id")
	}
	if err != nil {
		return annotateNamed(err, "job", c.Param("job_id"), rest.InPath+"job_id")
	}
	if err := c.RecordAccess(c.Param("job_id")); err != nil {
		return err
	}
	return c.SendPlain(http.StatusOK, uint64(len(script)), func(w io.Writer) error {
		_, err := io.WriteString(w, script)
		return err
	})
}

// numberOf returns the number by which the controller knows a job. A task or a
// component has one of its own.
func (h *handler) numberOf(ctx context.Context, c *rest.Call, job model.JobSelection) (id uint32, err error) {
	if !job.ArrayTaskID.Set && !job.HetOffset.Set {
		return job.JobID, nil
	}
	_, matches := partOf(job)
	_, err = h.Controller.Job(ctx, c.Credential(), job.JobID, model.Query{Flags: model.ShowAll, Without: model.JobAllocation | model.JobNodeIndexes}, func(j *model.Job) error {
		if matches(j) {
			id = j.StepID.JobID
		}
		return nil
	})
	if err == nil && id == 0 {
		err = missingJob(job)
	}
	return id, err
}

func missingJob(job model.JobSelection) error {
	name, _ := partOf(job)
	return errs.New(errs.NotFound, "there is no %s", name).WithNumber(slurmerror.InvalidJobID).WithSource(rest.InPath + "job_id")
}

// recordedScript returns the script of a job from accounting.
func (h *handler) recordedScript(c *rest.Call, job model.JobSelection) (script string, found bool, err error) {
	if !c.Permits(scope.SlurmdbRead) {
		return "", false, nil
	}
	err = recordsOf[model.AccountingJob](h, c, h.jobFilter(model.JobFilterScript, job))(func(j *model.AccountingJob) error {
		script, found = j.Script, true
		return nil
	})
	return script, found, err
}
