package self

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// VerifyAttributes compares the attributes that the kernel reports for the
// calling process with the expected ones (see expectedAttributes). Any
// difference is an error: it means that a step of the confinement had no
// effect.
func VerifyAttributes(expect *ipc.Attributes, files, tasks uint64) error {
	want := expectedAttributes(expect, files, tasks)
	got, err := measure()
	if err != nil {
		return err
	}
	if list := compare(want, got); len(list) > 0 {
		return errs.New(errs.Denied, "%d of %d process attributes are not as expected: %v", len(list), len(want), list)
	}
	return nil
}

// compare returns one sentence for each difference between want and got, sorted
// by the name of the attribute. An attribute that is in only one of the two is
// a difference, too.
func compare(want, got Attributes) []string {
	names := slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	slices.Sort(names)
	var list []string
	for _, name := range slices.Compact(names) {
		w, wanted := want[name]
		g, measured := got[name]
		switch {
		case !wanted:
			list = append(list, fmt.Sprintf("%s is %q, expected nothing", name, g))
		case !measured:
			list = append(list, fmt.Sprintf("%s could not be measured, expected %q", name, w))
		case !matches(w, g):
			list = append(list, fmt.Sprintf("%s is %q, expected %q", name, g, w))
		}
	}
	return list
}

func matches(want, got string) bool {
	if excluded, ok := strings.CutPrefix(want, otherThan); ok {
		return got != excluded && got != ""
	}
	return want == got
}
