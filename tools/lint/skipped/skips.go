package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A skips value maps each reason to the names of the tests that were skipped
// for that reason. Names have the form PACKAGE.TEST.
type skips map[string][]string

func (s skips) add(reason, pkg, test string) {
	name := pkg[strings.LastIndexByte(pkg, '/')+1:] + "." + test
	if !slices.Contains(s[reason], name) {
		s[reason] = append(s[reason], name)
	}
}

// maxNamed is the maximum number of tests that are named for one reason.
const maxNamed = 4

// print lists the reasons, the most frequent first.
func (s skips) print(out io.Writer) {
	n := 0
	for _, tests := range s {
		n += len(tests)
	}
	if n == 0 {
		return
	}
	fmt.Fprintf(out, "\nskipped tests: %d\n", n)
	reasons := slices.SortedFunc(maps.Keys(s), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(s[b]), len(s[a])), cmp.Compare(a, b))
	})
	for _, reason := range reasons {
		tests, more := s[reason], ""
		if len(tests) > maxNamed {
			tests, more = tests[:maxNamed], fmt.Sprintf(" and %d more", len(tests)-maxNamed)
		}
		fmt.Fprintf(out, "  %s: %s%s\n", reason, strings.Join(tests, ", "), more)
	}
}
