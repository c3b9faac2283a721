package api

import (
	"strconv"
	"strings"

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

// expandPath replaces the placeholders in the pattern, and makes the path
// absolute. Placeholders that can have several values in one job stay
// unchanged, and so does a pattern whose result would be too long for a path.
func expandPath(j *JobRow, pattern string) string {
	path, _ := model.ExpandPattern(pattern, func(letter byte) (string, bool) { return pathWord(j, letter) })
	if strings.HasPrefix(pattern, "/") {
		return path
	}
	return j.WorkDir + "/" + path
}

func pathWord(j *JobRow, letter byte) (string, bool) {
	decimal := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	switch letter {
	case 'j', 'J':
		return decimal(j.StepID.JobID), true
	case 'A':
		if j.ArrayJobID != 0 {
			return decimal(j.ArrayJobID), true
		}
		return decimal(j.StepID.JobID), true
	case 'a':
		return decimal(wireValue(j.ArrayTaskID)), true
	case 'u':
		return jobUser(j), true
	case 'x':
		return j.Name, true
	case 'N':
		for host := range model.Hosts(j.Nodes) {
			return host, true
		}
		return "", true
	}
	return "", false
}
