package api

import (
	"fmt"
	"net/http"
	"strconv"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

type OutputParams struct {
	Job    model.JobSelection
	Tail   uint32 // number of lines; 0 for all
	Follow bool
	Step   model.Opt[uint32] // unset for the batch script
}

// OutputEnded is the reason in the last event of a stream that ends because the job
// has ended. Any other reason means that the client should come back.
const OutputEnded = "the job has ended"

// maxStep is the greatest number of a step (SLURM_MAX_NORMAL_STEP_ID).
const maxStep = 0xfffffff0

// MaxTail is the maximum number of lines from the end of a file.
const MaxTail = 100_000

// tailLines returns the type of a number of lines.
func tailLines() schema.Type[uint32] {
	return asText(func(s string) (uint32, error) {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil || n == 0 || n > MaxTail {
			return 0, fmt.Errorf("expected a number of lines from 1 to %d, got %q", MaxTail, schema.Shorten(s))
		}
		return uint32(n), nil
	})
}

// stepNumber returns the type of the number of a step.
func stepNumber() schema.Type[model.Opt[uint32]] {
	return asText(func(s string) (model.Opt[uint32], error) {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil || n > maxStep {
			return model.Opt[uint32]{}, fmt.Errorf("expected the number of a step, got %q", schema.Shorten(s))
		}
		return model.Some(uint32(n)), nil
	})
}

var outputParams = schema.Object("", func() schema.Fields[OutputParams] {
	return schema.Fields[OutputParams]{
		schema.F("job_id", oneJob, func(p *OutputParams) *model.JobSelection { return &p.Job }, "Job id; \"12_3\" for a task, \"12+1\" for a component", schema.Required(0)),
		schema.F("tail", tailLines, func(p *OutputParams) *uint32 { return &p.Tail }, "Begin with this many lines before the end"),
		schema.F("step", stepNumber, func(p *OutputParams) *model.Opt[uint32] { return &p.Step }, "Number of a step, whose file accounting names (from Slurm 25.05 on), instead of the batch script"),
		schema.F("follow", boolText, func(p *OutputParams) *bool { return &p.Follow }, "Wait for more until the job has ended"),
	}
})

const outputDescription = "The gateway reads the file that the job's record names, as the job's user, whose token or connection the request must have. " +
	"It must be a regular file of this user on a file system of the gateway's machine. " +
	"The header Range selects bytes, unless the request has tail or follow. " +
	"With `follow=true` the answer goes on with what the job writes, until the job has ended. " +
	"With `Accept: text/event-stream` it does so as server-sent events: `output` has {\"offset\": …, \"text\": …}, where offset is the place in the file, in bytes, and what is no UTF-8 is shown as U+FFFD. " +
	"`reset` means that the file was replaced or became shorter, and the next text is from its beginning. " +
	"The last event is `end`: {\"reason\": …}, with the reason \"" + OutputEnded + "\" or another one, after which the client should come back. A client that comes back with the last id in Last-Event-ID gets what follows, from any worker."

// GetJobStdout returns the standard output of a job.
var GetJobStdout = declare(scope.ComputeRead, outputParams, Endpoint{
	Method: http.MethodGet, Path: "job/{job_id}/stdout", ID: "get_job_stdout", SlurmSince: slurmNever, SchedOnly: true, NoFields: true, Text: true,
	Doc: "Show the standard output of a job, also while it runs", Answer: Empty,
	Description: outputDescription,
	AnswerDoc:   "The output, as it is in the file",
})

// GetJobStderr returns the error output of a job.
var GetJobStderr = declare(scope.ComputeRead, outputParams, Endpoint{
	Method: http.MethodGet, Path: "job/{job_id}/stderr", ID: "get_job_stderr", SlurmSince: slurmNever, SchedOnly: true, NoFields: true, Text: true,
	Doc: "Show the error output of a job, also while it runs", Answer: Empty,
	Description: outputDescription,
	AnswerDoc:   "The output, as it is in the file",
})

// ScriptParams names the job whose script is shown.
type ScriptParams struct{ Job model.JobSelection }

var scriptParams = schema.Object("", func() schema.Fields[ScriptParams] {
	return schema.Fields[ScriptParams]{
		schema.F("job_id", oneJob, func(p *ScriptParams) *model.JobSelection { return &p.Job }, "Job id; \"12_3\" for a task, \"12+1\" for a component", schema.Required(0)),
	}
})

// GetJobScript returns the batch script of a job.
var GetJobScript = declare(scope.ComputeRead, scriptParams, Endpoint{
	Method: http.MethodGet, Path: "job/{job_id}/script", ID: "get_job_script", SlurmSince: slurmNever, SchedOnly: true, NoFields: true, Text: true,
	Doc: "Show the batch script of a job", Answer: Empty,
	Description: "The controller gives the script to the user of the job and to operators. After the job has ended, it is in accounting, if the site keeps scripts there (`AccountingStoreFlags=job_script`).",
	AnswerDoc:   "The script, as it was submitted",
})

// StepOutput returns the paths of a step's standard output and of its error output, as
// accounting has them. A path is "" if there is none, or if accounting does not have it.
func StepOutput(j *model.AccountingJob, step uint32) (stdout, stderr string) {
	row := &AccountingJobRow{AccountingJob: j, Records: new(Records)}
	for i := range j.Steps {
		if s := (&AccountingStepRow{&j.Steps[i], row}); s.StepID.Step == model.Some(step) {
			if s.StdOut != "" {
				stdout = accountingStepPath(s, s.StdOut)
			}
			if stderr = stdout; s.StdErr != "" {
				stderr = accountingStepPath(s, s.StdErr)
			}
		}
	}
	return stdout, stderr
}

// Stdout returns the path of a job's standard output. It returns "" if there is
// none.
func Stdout(j *JobRow) string { return stdout(j) }

// Stderr returns the path of a job's error output, like Stdout.
func Stderr(j *JobRow) string { return stderr(j) }
