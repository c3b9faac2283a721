package ctld

import (
	"strconv"

	"schedrestd/model"
)

// defaultOutput is where a job's output goes when nothing was said, in its working directory.
const defaultOutput = "sched-%j.out"

// expand replaces the words of a file name pattern: %j and %A the job's number, %u the user, %x
// the job's name, %N the node. The result is opened with the user's rights, so that it
// need not be judged here.
func (c *Controller) expand(pattern string, j *model.Job) string {
	return model.ExpandPattern(pattern, func(letter byte) (string, bool) { return c.word(letter, j) })
}

func (c *Controller) word(letter byte, j *model.Job) (string, bool) {
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
