// Package nss looks up users, groups and hosts.
//
// Users come from NSS (files, LDAP, sssd). A static Go program can't load the
// modules of NSS. So the package reads the files, and runs getent for entries
// that are not in them. It runs getent by a fixed path, with a time limit and a
// clean environment. If this process is root, getent runs under an unused id,
// because an NSS module parses data from the network. Results are cached for a
// few seconds.
//
// The package refuses names that getent could treat as an option or a number.
// It also refuses the id 4294967295, which tells the kernel to leave an id
// unchanged. Errors are *errs.Error: Invalid if the name or id is refused,
// NotFound if there is no such entry, and Unavailable if the look-up failed.
// The privileged parent does not link this package.
package nss

import (
	"bufio"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"schedrestd/internal/errs"
)

// source looks entries up, first in the files, then with getent.
type source struct {
	etc      string   // directory of the files passwd and group
	tools    []string // paths of getent; the first that exists is used
	timeout  time.Duration
	dns      *net.Resolver // asks name servers if there is no getent
	cacheTTL time.Duration // how long a result of getent is cached
	now      func() time.Time
	mu       sync.Mutex // guards answers
	answers  map[question]answer
}

type question struct{ database, key string }

type answer struct {
	text    string
	err     error
	expires time.Time
}

// maxAnswers limits the number of cached results. When it is reached, the cache
// is cleared.
const maxAnswers = 1024

// system is the source of this machine.
var system = &source{
	etc:      "/etc",
	tools:    []string{"/usr/bin/getent", "/bin/getent"},
	timeout:  5 * time.Second,
	dns:      &net.Resolver{PreferGo: true},
	cacheTTL: 10 * time.Second,
	now:      time.Now,
}

// find returns the first line of the database that match accepts. The argument
// file is true if the line comes from a file in /etc, and false if it comes
// from getent.
func (n *source) find(database, key string, match func(line string, file bool) bool) (string, error) {
	var found string
	err := n.eachLine(database, func(line string) bool {
		if match(line, true) {
			found = line
			return true
		}
		return false
	})
	if err != nil || found != "" {
		return found, err
	}
	out, err := n.getent(database, key)
	switch {
	case errs.KindOf(err) == errs.Unsupported || err == nil && !match(out, false):
		return "", notFound(database, key)
	case err != nil:
		return "", err
	}
	return out, nil
}

func notFound(database, key string) error {
	kind := map[string]string{"passwd": "user", "group": "group", "initgroups": "user", "ahosts": "host"}[database]
	return errs.New(errs.NotFound, "%s %s does not exist", kind, key)
}

// eachLine calls f for each line of a file in /etc until f returns true.
func (n *source) eachLine(database string, f func(line string) (stop bool)) error {
	file, err := os.Open(filepath.Join(n.etc, database))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "look up a %s entry", database)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20) // a group line names all its members
	for lines.Scan() {
		if f(lines.Text()) {
			return nil
		}
	}
	return errs.Wrap(lines.Err(), errs.Unavailable, "read the %s file", database)
}

// cacheAnswer caches a result for a while, unless the look-up failed.
func (n *source) cacheAnswer(q question, text string, err error) {
	if errs.KindOf(err) == errs.Unavailable && err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers == nil || len(n.answers) >= maxAnswers {
		n.answers = map[question]answer{}
	}
	n.answers[q] = answer{text, err, n.now().Add(n.cacheTTL)}
}

func (n *source) cachedAnswer(q question) (answer, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, ok := n.answers[q]
	return a, ok && n.now().Before(a.expires)
}
