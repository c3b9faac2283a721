package ctld

import (
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// defaultOutput is the name of the output file of a job that specifies none.
// The name is relative to the job's working directory.
const defaultOutput = "sched-%j.out"

// expand returns the path of a file of a job's script: its patterns are those of
// Slurm. The job's user opens the file, so expand does not check the path.
func (c *Controller) expand(pattern string, j *model.Job) string {
	path, _ := c.expandChecked(pattern, j)
	return path
}

// expandChecked does the same, and reports whether the path is short enough.
func (c *Controller) expandChecked(pattern string, j *model.Job) (path string, ok bool) {
	return model.NewPathRules.ExpandPath(j.WorkDir, pattern, func(letter byte, width int) (string, bool) {
		return c.patternValue(letter, width, j)
	})
}

// checkExpanded refuses a job with a file name that is too long after its
// patterns have been replaced. Each list of jobs contains these names, and a
// pattern of two bytes can stand for a job's name of a kilobyte.
func (c *Controller) checkExpanded(m *model.Job) error {
	j := *m
	j.StepID.JobID = maxJobID // the number is not known yet
	for _, t := range []struct{ field, pattern string }{
		{"standard_output", m.StdOut}, {"standard_error", m.StdErr}, {"standard_input", m.StdIn},
	} {
		if _, ok := c.expandChecked(t.pattern, &j); !ok {
			return refuseField(errs.Invalid, fault.PathTooLong, t.field, "longer than %d bytes after its patterns are replaced", model.MaxExpanded)
		}
	}
	return nil
}

func (c *Controller) patternValue(letter byte, width int, j *model.Job) (string, bool) {
	const noTask = model.NoVal32 // no job is part of an array
	switch letter {
	case 'j', 'J', 'A':
		return model.PadNumber(j.StepID.JobID, width), true
	case 'a':
		return model.PadNumber(noTask, width), true
	case 'b':
		return model.PadNumber(noTask%10, width), true
	case 'n', 't':
		return model.PadNumber(0, width), true
	case 'r':
		return model.PadNumber(uint32(j.RestartCnt), width), true
	case 's':
		return "batch", true
	case 'S':
		return "", true // a job here has no SLUID
	case 'u':
		return j.UserName, true
	case 'x':
		return j.Name, true
	case 'N':
		return c.cfg.Node, true
	}
	return "", false
}
