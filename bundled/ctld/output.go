package ctld

import (
	"strconv"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// defaultOutput is the name of the output file of a job that specifies none.
// The name is relative to the job's working directory.
const defaultOutput = "sched-%j.out"

// expand replaces the patterns in a file name: %j, %J and %A become the job's
// number, %u the user's name, %x the job's name, and %N the node's name. The
// job's user opens the resulting file, so expand does not check the path.
func (c *Controller) expand(pattern string, j *model.Job) string {
	text, _ := model.ExpandPattern(pattern, func(letter byte) (string, bool) { return c.patternValue(letter, j) })
	return text
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
		if _, ok := model.ExpandPattern(t.pattern, func(letter byte) (string, bool) { return c.patternValue(letter, &j) }); !ok {
			return refuseField(errs.Invalid, fault.PathTooLong, t.field, "longer than %d bytes after its patterns are replaced", model.MaxExpanded)
		}
	}
	return nil
}

func (c *Controller) patternValue(letter byte, j *model.Job) (string, bool) {
	switch letter {
	case 'j', 'J', 'A':
		return strconv.FormatUint(uint64(j.StepID.JobID), 10), true
	case 'u':
		return j.UserName, true
	case 'x':
		return j.Name, true
	case 'N':
		return c.cfg.Node, true
	}
	return "", false
}
