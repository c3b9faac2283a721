package security

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Expectation is what the parent expects of a worker, from what it asked the kernel
// for and what it knows about the thread that starts workers.
type Expectation struct {
	Identity
	Inherited Inheritance
	Files     uint64 // limit of open descriptors
	Tasks     uint64 // … of processes and threads of its user
	Writes    bool   // it keeps its parent's limit of file sizes
}

// Attributes is the set of process attributes that the kernel reports, by name,
// each value as /proc shows it. It includes everything that the confinement
// promises.
type Attributes map[string]string

// Expect returns the expected attributes of a worker that is confined as c
// says.
func Expect(c Expectation) Attributes {
	id := func(n uint32) string { return strings.TrimSpace(strings.Repeat(fmt.Sprint(n)+" ", 4)) }
	groups := slices.Clone(c.Groups)
	slices.Sort(groups)
	p := Attributes{
		"uid":             id(c.UID), // real, effective, saved, file system
		"gid":             id(c.GID),
		"groups":          strings.Trim(fmt.Sprint(groups), "[]"),
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

// Other is the prefix that Not puts before a value.
const Other = "other than "

// Not returns the expectation of any value except this one, for example any
// other namespace.
func Not(value string) string { return Other + value }
