package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"schedrestd/cli/mcp"
	"schedrestd/cli/script"
	"schedrestd/internal/errs"
)

// sbatchOptions are arguments of submit_job. The script may have other options.
var sbatchOptions = strings.Fields("job-name partition account qos time nodes ntasks cpus-per-task mem gres array dependency begin chdir output")

// passedVariables are the variables that jobs get from the environment. Others
// may be secrets of the program that has started schedctl.
var passedVariables = []string{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "USER"}

// A dryRun is a submission that the model has seen but may not have confirmed.
type dryRun struct {
	arguments map[string]string
	job       script.Job
	outcome   mcp.Result // of the submission
	err       error      // with which it failed, though the job may have been submitted
}

// submitTool returns the tool that submits a job. The confirmations are random,
// so that only the answer to a dry run leads to a submission.
func (c *connection) submitTool() mcp.Tool {
	arguments := []mcp.Argument{{Name: "script", Required: true, Description: "batch script, with #! in its first line"}}
	for _, option := range sbatchOptions {
		arguments = append(arguments, mcp.Argument{Name: strings.ReplaceAll(option, "-", "_"), Description: "as --" + option + " of sbatch"})
	}
	dryRuns := map[string]*dryRun{} // by confirmation
	return mcp.Tool{
		Name: "submit_job", Scope: "compute.create", Arguments: append(arguments, mcp.Argument{Name: "confirmation", Description: "from the dry run"}),
		Description: "Submit a job in two steps. Without a confirmation this is a dry run, which submits nothing: it shows what would be sent, and a confirmation. " +
			"Show this to the user. A call with the same arguments and the confirmation submits the job, once.",
		Call: func(ctx context.Context, v map[string]string) (mcp.Result, error) {
			confirmation := v["confirmation"]
			delete(v, "confirmation")
			d := dryRuns[confirmation]
			switch {
			case confirmation == "":
				job, err := c.checkedJob(ctx, v)
				if err != nil {
					return mcp.Result{}, err
				}
				checked, estimate, err := c.estimated(ctx, job)
				if err != nil {
					return mcp.Result{}, err
				}
				if len(dryRuns) == 16 { // each may have a long script
					clear(dryRuns)
				}
				confirmation = rand.Text()
				dryRuns[confirmation] = &dryRun{arguments: v, job: job}
				shown := maps.Clone(job)
				shown["script"] = fmt.Sprintf("as in the call: %d bytes", len(v["script"]))
				if estimate != nil {
					shown["estimate"] = estimate
				}
				return mcp.Result{Text: "This was a dry run: nothing was submitted. " + checked +
					" To submit it, repeat the call with the confirmation " + confirmation + ".", Data: shown}, nil
			case d == nil || !maps.Equal(d.arguments, v):
				return mcp.Result{}, usageError("confirmation: not that of a dry run with these arguments; nothing was submitted").
					WithHint("first call submit_job without a confirmation")
			case d.err == nil && d.outcome.Text == "":
				return c.submitOnce(context.WithoutCancel(ctx), d, confirmation)
			}
			return d.outcome, d.err
		},
	}
}

// estimated lets the controller check the job, and returns what is known about it: a
// sentence, and when and where the job would start. Without a dry run of the gateway,
// there is no estimate.
func (c *connection) estimated(ctx context.Context, job script.Job) (checked string, estimate map[string]any, err error) {
	e, err := c.Estimate(ctx, job)
	switch {
	case errs.KindOf(err) == errs.Unsupported:
		return "The options are valid, but the controller has not seen the job, and may refuse it.", nil, nil
	case err != nil:
		return "", nil, err
	}
	estimate = map[string]any{"nodes": e.Nodes, "partition": e.Partition, "cpus": e.CPUs, "message": e.Message, "warnings": strings.Join(e.Warnings, "; ")}
	if e.Start.Set {
		estimate["start"] = time.Unix(e.Start.Int(), 0).UTC().Format(time.RFC3339)
	}
	if len(e.Preempted) > 0 {
		estimate["preempted_jobs"] = strings.Trim(fmt.Sprint(e.Preempted), "[]")
	}
	shortForm("", estimate)
	return "The controller accepts the job, and estimates its start.", estimate, nil
}

// checkedJob returns the job that the arguments describe. It makes the checks
// for which no submission is needed.
func (c *connection) checkedJob(ctx context.Context, v map[string]string) (script.Job, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, errs.Wrap(err, errs.Malformed, "find the current directory")
	}
	s := script.Source{Name: "script", Text: []byte(v["script"]), Directory: dir}
	for _, option := range sbatchOptions {
		if value := v[strings.ReplaceAll(option, "-", "_")]; value != "" {
			s.Options = append(s.Options, "--"+option+"="+value)
		}
	}
	for _, name := range passedVariables {
		if value, ok := os.LookupEnv(name); ok {
			s.Environment = append(s.Environment, name+"="+value)
		}
	}
	job, err := script.Parse(s)
	if err != nil {
		return nil, err
	}
	script.AddVariables(job, placeVariables(dir)...)
	partition, _ := job["partition"].(string)
	return job, c.checkNames(ctx, &filter{partitions: words(partition)})
}

// submitOnce submits a job, with an Idempotency-Key if the gateway supports keys.
// If it may have submitted the job, a repetition could submit a second one.
func (c *connection) submitOnce(ctx context.Context, d *dryRun, key string) (mcp.Result, error) {
	submitted, err := c.Submit(ctx, d.job, key)
	if errs.KindOf(err) == errs.Unsupported { // nothing was submitted
		submitted, err = c.Submit(ctx, d.job, "")
	}
	if uncertain := withUncertainty(err); uncertain != err {
		d.err, err = uncertain, uncertain
	}
	if err != nil {
		return mcp.Result{}, err
	}
	d.outcome.Text = fmt.Sprintf("Job %d was submitted with this confirmation.", submitted.ID)
	d.outcome.Data = shortForm("", map[string]any{"job_id": submitted.ID, "message": submitted.Message, "warnings": strings.Join(submitted.Warnings, "; ")})
	return d.outcome, nil
}

// cancelTool returns the tool that cancels a job.
func (c *connection) cancelTool() mcp.Tool {
	return mcp.Tool{Name: "cancel_job", Scope: "compute.cancel", Destructive: true, Arguments: []mcp.Argument{jobID},
		Description: "Cancel a job, a task of an array, or all tasks with the array's id. This can't be undone: ask the user first.",
		Call: func(ctx context.Context, v map[string]string) (mcp.Result, error) {
			err := checkID(v["job_id"])
			if err == nil {
				err = c.cancelJob(ctx, v["job_id"], "")
			}
			return mcp.Result{Text: "Job " + v["job_id"] + " was cancelled. It may run for a moment longer."}, err
		}}
}
