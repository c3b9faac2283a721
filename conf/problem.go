package conf

import (
	"fmt"
	"strings"

	"schedrestd/internal/errs"
)

// maxProblems limits the number of problems that are printed for one bad file.
const maxProblems = 100

// Warning describes a defect of a configuration file that does not make the
// file unusable, such as an unknown key.
type Warning struct {
	File string
	Line int // 0 if the warning is about the whole file
	Text string
}

// String returns "file:line: text".
func (w Warning) String() string {
	if w.Line == 0 {
		return w.File + ": " + w.Text
	}
	return fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Text)
}

// Problem describes a defect of a configuration file that makes the file
// unusable.
type Problem Warning

func (p Problem) Error() string { return Warning(p).String() }

// Problems lists all problems of a configuration, in the order of its lines, so
// that an administrator can fix them together.
type Problems []Problem

// Error lists the problems, one per line.
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

// err returns p as an error, or nil if there is no problem.
func (p Problems) err(hint string) error {
	if len(p) == 0 {
		return nil
	}
	return &errs.Error{Kind: errs.Invalid, Err: p, Hint: hint}
}
