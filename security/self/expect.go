package self

import (
	"fmt"
	"slices"
	"strings"

	"schedrestd/become"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Attributes maps the names of process attributes to their values, in the form
// that /proc shows. Together the attributes cover everything that the
// confinement promises.
type Attributes map[string]string

// expectedAttributes returns the attributes that a confined process must have.
// The parameter a contains the values that the parent sent to the process. The
// parameter files is the process's limit on open descriptors, and tasks is its
// user's limit on processes and threads.
func expectedAttributes(a *ipc.Attributes, files, tasks uint64) Attributes {
	id := func(n uint32) string { return strings.TrimSpace(strings.Repeat(fmt.Sprint(n)+" ", 4)) }
	none := security.Capabilities(0).String()
	p := Attributes{
		"uid":             id(a.UID), // real, effective, saved, file system
		"gid":             id(a.GID),
		"groups":          groups(a),
		"cap_inheritable": none,
		"cap_permitted":   none,
		"cap_effective":   none,
		"cap_bounding":    a.Bounding,
		"cap_ambient":     none,
		"no_new_privs":    "1",
		"seccomp":         a.Seccomp,
		"dumpable":        "0",
		"session":         "own",
		"limit_core":      "0 0",
		"limit_file_size": fmt.Sprintf("%d %d", a.FileSize, a.MaxSize),
		"limit_files":     fmt.Sprintf("%d %d", files, files),
		"limit_tasks":     fmt.Sprintf("%d %d", tasks, tasks),
		"descriptors":     "0 1 2 3",
	}
	for _, n := range a.Namespaces {
		if p["ns_"+n.Type] = n.ID; n.MustDiffer {
			p["ns_"+n.Type] = otherThan + n.ID
		}
	}
	return p
}

// groups returns the supplementary groups as the kernel shows them: sorted by
// number, and with the overflow id in place of each group that the user
// namespace lacks.
func groups(a *ipc.Attributes) string {
	list := slices.Sorted(slices.Values(a.Groups))
	for i, gid := range list {
		if a.OwnUserns && gid != a.GID {
			list[i] = become.Overflow
		}
	}
	return strings.Trim(fmt.Sprint(list), "[]")
}

// otherThan, as a prefix, marks a value that an attribute must not have, such
// as the parent's own namespace.
const otherThan = "other than "
