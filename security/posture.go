package security

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
)

// Cage is what the parent expects of a worker, from what it asked the kernel for and from
// what it knows about the thread that starts workers.
type Cage struct {
	Identity
	Inherited Inheritance
	Files     uint64 // limit of open descriptors
	Tasks     uint64 // … of processes and threads of its user
	Writes    bool   // it has its starter's limit of the size of files
}

// Posture is what the kernel says about a process, name by name, each value
// as /proc shows it. It has a name for everything that is promised.
type Posture map[string]string

// Expect is the posture of a worker that sits in c.
func Expect(c Cage) Posture {
	id := func(n uint32) string { return strings.TrimSpace(strings.Repeat(fmt.Sprint(n)+" ", 4)) }
	groups := slices.Clone(c.Groups)
	slices.Sort(groups)
	p := Posture{
		"uid":             id(c.UID), // real, effective, saved, file system
		"gid":             id(c.GID),
		"groups":          strings.ReplaceAll(join(groups), ",", ""),
		"cap_inheritable": Capabilities(0).String(),
		"cap_permitted":   Capabilities(0).String(),
		"cap_effective":   Capabilities(0).String(),
		"cap_bounding":    c.Inherited.Bounding,
		"cap_ambient":     Capabilities(0).String(),
		"no_new_privs":    "1",
		"seccomp":         c.Inherited.Seccomp,
		"dumpable":        "0",
		"session":         "own",
		"limit_core":      "0 0",
		"limit_file_size": "0 0",
		"limit_files":     fmt.Sprintf("%d %d", c.Files, c.Files),
		"limit_tasks":     fmt.Sprintf("%d %d", c.Tasks, c.Tasks),
		"descriptors":     "0 1 2 3",
	}
	if c.Writes {
		var l unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_FSIZE, &l) == nil {
			p["limit_file_size"] = fmt.Sprintf("%d %d", l.Cur, l.Max)
		}
	}
	for name, id := range c.Inherited.Namespaces {
		p["ns_"+name] = id
	}
	return p
}

// Prove compares what the kernel says about the calling process with what was promised. Any
// difference is one too many: it means that something, somewhere, did not do what it was
// asked to.
func Prove(want Posture) error {
	got, err := Measure()
	if err != nil {
		return err
	}
	if list := compare(want, got); len(list) > 0 {
		return errs.New(errs.Denied, "%d of %d facts about this process are not as expected: %v", len(list), len(want), list)
	}
	return nil
}

// compare lists how got differs from want, one sentence each, in order; a name that only one
// of them has is a difference too. Nothing listed means that all is as promised.
func compare(want, got Posture) []string {
	names := slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	slices.Sort(names)
	var list []string
	for _, name := range slices.Compact(names) {
		w, wanted := want[name]
		g, measured := got[name]
		switch {
		case !wanted:
			list = append(list, fmt.Sprintf("%s is %q and nothing was expected", name, g))
		case !measured:
			list = append(list, fmt.Sprintf("%s could not be measured, expected %q", name, w))
		case !agree(w, g):
			list = append(list, fmt.Sprintf("%s is %q, expected %q", name, g, w))
		}
	}
	return list
}

const other = "other than "

// Not is a fact that is anything but value: a namespace of one's own, whichever it is.
func Not(value string) string { return other + value }

func agree(want, got string) bool {
	if not, ok := strings.CutPrefix(want, other); ok {
		return got != not && got != ""
	}
	return want == got
}

func join(ids []uint32) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = fmt.Sprint(id)
	}
	return strings.Join(words, ", ")
}
