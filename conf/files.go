package conf

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/guard/content"
)

// Files opens configuration files.
//
// It follows symbolic links, because some sites make slurm.conf a link into a
// directory tree that their configuration management maintains. A link must
// belong to root, to this process's user or to the owner of the link's
// directory (package guard). The file must not be writable by every user. A
// directory on its path must not be writable by every user either, unless the
// directory has the sticky bit. The file's owner is checked later (CheckTrust),
// because the content determines which users may own the file.
type Files interface {
	// Open opens a file that satisfies guard.Configuration.
	Open(path string) (*os.File, error)
	// Exists reports whether path exists.
	Exists(path string) bool
}

// Reader reads configuration files through Files.
type Reader struct{ Files }

// diskReader reads files that this process opens itself.
var diskReader = Reader{disk{}}

type disk struct{}

func (disk) Open(path string) (*os.File, error) {
	f, _, err := guard.Open(path, guard.Configuration)
	return f, err
}

// Exists reports whether path exists.
func (disk) Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Read works like the function Read, but opens the files through r.
func (r Reader) Read(path string) (*Cluster, []Warning, error) {
	c, warnings, err := readCluster(path, newSource(r.Files))
	return c, warnings, r.withHint(path, err)
}

// maxCA limits a file of CAs, which may contain text beside its certificates.
const maxCA = 256 << 10

// ReadCA reads the file of the CAs that sign the daemons' certificates. It
// returns nil if the daemons use no TLS. Errors name the key that names the file.
func (r Reader) ReadCA(c *Cluster) (path string, text []byte, err error) {
	if !c.SecureRPC {
		return "", nil, nil
	}
	if path, err = c.ca(); err != nil {
		return "", nil, err
	}
	if text, err = r.ReadAuthorities(path); err != nil {
		return "", nil, &errs.Error{Kind: errs.KindOf(err), Message: c.Path + ": TLSParameters: ca_cert_file", Err: err,
			Hint: cmp.Or(errs.HintOf(err), "TLSType=tls/s2n needs the certificate of the cluster's CA, which is on the controller's machine")}
	}
	return path, text, nil
}

// ReadAuthorities reads a file of CAs.
func (r Reader) ReadAuthorities(path string) ([]byte, error) {
	f, err := r.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return content.ReadOpened(f, path, authorities, maxCA)
}

// ReadAuthorities reads a file of CAs, for a process that opens files itself.
func ReadAuthorities(path string) ([]byte, error) { return diskReader.ReadAuthorities(path) }

// authorities is the rule for a file of CAs.
var authorities = guard.Rule{Label: "CA certificate", AllowLink: true}

// ReadCA reads the file of the CAs that sign the daemons' certificates, like
// Reader.ReadCA.
func ReadCA(c *Cluster) (path string, text []byte, err error) { return diskReader.ReadCA(c) }

// Find works like the function Find, but looks for the files through r.
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

// withHint adds a hint to an error about a missing key if the file at path
// hides another configuration file. The hidden file may contain the key.
func (r Reader) withHint(path string, err error) error {
	problems, ok := errors.AsType[Problems](err)
	isMissingKey := func(p Problem) bool { return p.Line == 0 && strings.HasSuffix(p.Text, missingSuffix) }
	if !ok || !slices.ContainsFunc(problems, isMissingKey) {
		return err
	}
	return problems.err(cmp.Or(r.shadowHint(path), errs.HintOf(err)))
}

// missingSuffix is the end of the text of a Problem about a required key.
const missingSuffix = " is missing"

// shadowHint returns a hint if the file at path hides another file, and
// otherwise "". Only the first existing file of DefaultPaths is read. For
// example, an administrator who creates a sched.conf to add a single line hides
// slurm.conf.
func (r Reader) shadowHint(path string) string {
	i := slices.Index(DefaultPaths, path)
	if i < 0 {
		return ""
	}
	for _, hidden := range DefaultPaths[i+1:] {
		if r.Exists(hidden) {
			return fmt.Sprintf("%s is not read, because %s exists; "+
				"to read both, add this as the first line of %[2]s: Include %[1]s", hidden, path)
		}
	}
	return ""
}
