package api

import (
	"cmp"
	"fmt"

	"schedrestd/model"
)

// The controller sends the paths of a job's input and output as patterns. If a
// job does not set one of these paths, controllers before 26.05 omit that path.
// The functions below supply missing paths and expand the patterns, as
// slurmrestd does.

// defaultOutput returns the pattern of the output path for a job that does not
// set one.
func defaultOutput(j *JobRow) string {
	if j.ArrayJobID != 0 {
		return "slurm-%A_%a.out"
	}
	return "slurm-%j.out"
}

func stdout(j *JobRow) string {
	switch {
	case j.StdOut != "":
		return expandPath(j, j.StdOut)
	case j.BatchFlag != 0:
		return expandPath(j, defaultOutput(j))
	}
	return ""
}

// stderr returns the path of a job's error output. If a job with a script does
// not set this path, its errors go to the standard output. An allocation
// without a script has no default path.
func stderr(j *JobRow) string {
	switch {
	case j.StdErr != "":
		return expandPath(j, j.StdErr)
	case j.BatchFlag != 0:
		return stdout(j)
	}
	return ""
}

func stdin(j *JobRow) string {
	switch {
	case j.StdIn != "":
		return expandPath(j, j.StdIn)
	case j.BatchFlag != 0:
		return "/dev/null"
	}
	return ""
}

// isScript reports whether the files of this step are those of the batch script.
func isScript(step model.Opt[uint32]) bool { return !step.Set || step.Number == model.BatchStep }

// expandPath returns the path that slurmd opens for a pattern of the job's batch
// script, or of its step StepID.Step. Before the job has its nodes, the name of the first of them is empty.
func expandPath(j *JobRow, pattern string) string {
	host := j.BatchHost
	if host == "" {
		for host = range model.Hosts(j.Nodes) {
			break
		}
	}
	path, _ := j.PathRules.ExpandPath(j.WorkDir, pattern, func(letter byte, width int) (string, bool) {
		return pathWord(j, host, letter, width)
	})
	return path
}

func pathWord(j *JobRow, host string, letter byte, width int) (string, bool) {
	switch letter {
	case 'j':
		return model.PadNumber(j.StepID.JobID, width), true
	case 'J':
		if isScript(j.StepID.Step) {
			return model.PadNumber(j.StepID.JobID, width), true
		}
		return fmt.Sprintf("%s.%d", model.PadNumber(j.StepID.JobID, width), j.StepID.Step.Number), true
	case 'A':
		return model.PadNumber(cmp.Or(j.ArrayJobID, j.StepID.JobID), width), true
	case 'a':
		return model.PadNumber(wireValue(j.ArrayTaskID), width), true
	case 'b':
		return model.PadNumber(wireValue(j.ArrayTaskID)%10, width), true
	case 'n', 't': // the script, or the first task
		return model.PadNumber(0, width), true
	case 's':
		if isScript(j.StepID.Step) {
			return "batch", true
		}
		return model.PadNumber(j.StepID.Step.Number, width), true
	case 'u':
		return jobUser(j), true
	case 'x':
		return j.Name, true
	case 'N':
		return host, true
	}
	if j.PathRules == model.NewPathRules {
		switch letter {
		case 'r':
			return model.PadNumber(uint32(j.RestartCnt), width), true
		case 'S':
			return sluidText(j.StepID.SLUID), true
		}
	}
	return "", false
}
