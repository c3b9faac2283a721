package ctld

import (
	"strconv"
	"strings"

	"schedrestd/model"
)

// defaultOutput is where a job's output goes when nothing was said, in its working directory.
const defaultOutput = "sched-%j.out"

// maxPadding is the most zeros that a pattern gets: "%999999999j" must stay cheap.
const maxPadding = 10

// expand replaces the %-words of a file name pattern: %j and %A the job's number, %u the user, %x
// the job's name, %N the node, %% a percent sign. A number before the letter is a width, filled
// with zeros. Other words stay as they are. The result is opened with the user's rights, so that it
// need not be judged here.
func (c *Controller) expand(pattern string, j *model.Job) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(pattern, "%")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		if digits == len(after) {
			b.WriteString("%" + after)
			return b.String()
		}
		word, known := c.word(after[digits], j)
		if !known {
			word = "%" + after[:digits+1]
		} else if width, _ := strconv.Atoi(after[:digits]); width > len(word) {
			b.WriteString(strings.Repeat("0", min(width, maxPadding)-min(len(word), maxPadding)))
		}
		b.WriteString(word)
		pattern = after[digits+1:]
	}
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
	case '%':
		return "%", true
	}
	return "", false
}
