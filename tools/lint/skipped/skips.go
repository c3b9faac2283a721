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

// notForThisRun begins the reason of a test that has nothing to check in this run, such as
// with an old release of other software. A machine that has everything skips it, too, so it
// does not count as skipped.
const notForThisRun = "not for this run: "

// print lists the reasons.
func (s skips) print(out io.Writer) {
	skipped, others := skips{}, skips{}
	for reason, tests := range s {
		if text, ok := strings.CutPrefix(reason, notForThisRun); ok {
			others[text] = tests
		} else {
			skipped[reason] = tests
		}
	}
	skipped.printList(out, "skipped tests")
	others.printList(out, "tests that are not for this run")
}

// printList lists the reasons in s, the most frequent first.
func (s skips) printList(out io.Writer, title string) {
	n := 0
	for _, tests := range s {
		n += len(tests)
	}
	if n == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s: %d\n", title, n)
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
