package conf

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"schedrestd/errs"
	"schedrestd/guard"
)

// Files opens configuration files.
//
// Links are followed, because sites keep slurm.conf as a link into a tree that
// their configuration management owns. Only links made by root, this process's
// user or the owner of the link's directory are followed (guard). Neither the
// file at the end nor a directory on the way may be writable by other users.
// The owner of the file is reported: that user decides what a root process
// does.
type Files interface {
	// Open opens a file that suits guard.Configuration.
	Open(path string) (*os.File, error)
	// Exists reports whether there is something at path.
	Exists(path string) bool
}

// Reader reads configuration files.
type Reader struct{ Files }

// own reads the files that this process can open itself.
var own = Reader{disk{}}

type disk struct{}

// Open opens path.
func (disk) Open(path string) (*os.File, error) {
	f, _, err := guard.Open(path, guard.Configuration)
	return f, err
}

// Exists reports whether there is something at path.
func (disk) Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Read reads the cluster's configuration, as the function Read, from the files
// of r.
func (r Reader) Read(path string) (*Cluster, []Warning, error) {
	c, warnings, err := readCluster(path, from(r.Files))
	return c, warnings, r.hinted(path, err)
}

// Find finds the cluster's configuration, as the function Find, among the files
// of r.
func (r Reader) Find(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if path, err := Env("SCHED_CONF"); path != "" || err != nil {
		return path, err
	}
	for _, path := range DefaultPaths {
		if r.Exists(path) {
			return path, nil
		}
	}
	return "", errs.New(errs.NotFound, "no configuration: none of %s exists", strings.Join(DefaultPaths, ", ")).
		WithHint("name one with -f FILE or SCHED_CONF; /dev/null means no configuration")
}

// hinted adds to an error about a missing key that the file hides another one.
func (r Reader) hinted(path string, err error) error {
	problems, ok := errors.AsType[Problems](err)
	lacks := func(p Problem) bool { return p.Line == 0 && strings.HasSuffix(p.Text, missing) }
	if !ok || !slices.ContainsFunc(problems, lacks) {
		return err
	}
	return problems.err(r.shadowed(path))
}

// missing ends a Problem about a key that a file must have.
const missing = " is missing"

// shadowed returns a hint when path is one of DefaultPaths and hides a later
// one that exists; otherwise "". That happens when an administrator creates the
// first file to add one line.
func (r Reader) shadowed(path string) string {
	at := slices.Index(DefaultPaths, path)
	if at < 0 {
		return ""
	}
	for _, hidden := range DefaultPaths[at+1:] {
		if r.Exists(hidden) {
			return fmt.Sprintf("%s is not read, because %s exists; to read both, add this as the first line of %[2]s: Include %[1]s", hidden, path)
		}
	}
	return ""
}
