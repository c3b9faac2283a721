package ctld

import (
	"strconv"

	"schedrestd/model"
)

// defaultOutput is the name of the output file if the job names none. It is
// relative to the working directory.
const defaultOutput = "sched-%j.out"

// expand replaces the patterns in a file name: %j and %A with the job's number,
// %u with the user, %x with the job's name, %N with the node. The job's user
// opens the resulting file, so expand does not check the path.
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
