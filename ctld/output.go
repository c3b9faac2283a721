package ctld

import (
	"strconv"

	"schedrestd/model"
)

// defaultOutput is the name of the output file of a job that specifies none.
// The name is relative to the job's working directory.
const defaultOutput = "sched-%j.out"

// expand replaces the patterns in a file name: %j, %J and %A become the job's
// number, %u the user's name, %x the job's name, and %N the node's name. The
// job's user opens the resulting file, so expand does not check the path.
func (c *Controller) expand(pattern string, j *model.Job) string {
	return model.ExpandPattern(pattern, func(letter byte) (string, bool) { return c.patternValue(letter, j) })
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
