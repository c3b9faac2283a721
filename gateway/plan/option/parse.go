package option

import (
	"fmt"
	"strings"

	"schedrestd/internal/errs"
)

// invalid returns the error about a variable with an invalid value. The format
// continues the sentence that begins with the variable.
func invalid(name, value, format string, args ...any) *errs.Error {
	return errs.New(errs.Invalid, "environment: %s=%s%s", name, value, fmt.Sprintf(format, args...))
}

// splitList splits a value at commas. It drops empty words, and the spaces
// around words.
func splitList(v string) []string {
	words := []string{}
	for w := range strings.SplitSeq(v, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}
