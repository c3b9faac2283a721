package conf

import (
	"fmt"
	"strings"

	"schedrestd/errs"
)

// maxProblems bounds what one bad file makes the program print.
const maxProblems = 100

// Warning is something in a configuration file that is passed over.
type Warning struct {
	File string
	Line int // 0: about the file as a whole
	Text string
}

// String is "file:line: text".
func (w Warning) String() string {
	if w.Line == 0 {
		return w.File + ": " + w.Text
	}
	return fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Text)
}

// Problem is something that keeps a configuration from being used.
type Problem Warning

func (p Problem) Error() string { return Warning(p).String() }

// Problems is everything wrong with a configuration, in the order of its lines:
// whoever mends one should not have to start again to learn of the next.
type Problems []Problem

// Error lists the problems, one a line.
func (p Problems) Error() string {
	lines := make([]string, 0, len(p))
	for i, problem := range p {
		if i == maxProblems {
			lines = append(lines, fmt.Sprintf("and %d more", len(p)-i))
			break
		}
		lines = append(lines, problem.Error())
	}
	return strings.Join(lines, "\n")
}

// err is nil when there is no problem.
func (p Problems) err(hint string) error {
	if len(p) == 0 {
		return nil
	}
	return &errs.Error{Kind: errs.Invalid, Err: p, Hint: hint}
}
