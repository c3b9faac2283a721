// Package nss looks users, groups and hosts up.
//
// Users live in NSS (files, LDAP, sssd), which a static Go program can't load. So the
// files are read here, and for what they don't have getent is asked: by fixed
// path, with a time limit, a clean environment, as nobody when this process is
// root, because an NSS module parses what came over the network. Answers are kept
// for a few seconds.
//
// It refuses names that getent could take for an option or a number, and numbers
// that the kernel uses for "nobody we know". Errors are *errs.Error: NotFound when
// there is no such entry, Unavailable when it could not be found out. The privileged
// parent does not link it.
package nss

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"schedrestd/errs"
)

// source looks entries up: the files first, then getent.
type source struct {
	etc     string   // where passwd and group are
	tools   []string // where getent may be; the first that exists is used
	limit   time.Duration
	keep    time.Duration // how long an answer of getent is kept
	now     func() time.Time
	mu      sync.Mutex
	answers map[question]answer
}

type question struct{ database, key string }

type answer struct {
	text  string
	err   error
	until time.Time
}

// maxAnswers bounds the answers that are kept; past it all are forgotten.
const maxAnswers = 1024

// system is this machine's.
var system = &source{
	etc:   "/etc",
	tools: []string{"/usr/bin/getent", "/bin/getent"},
	limit: 5 * time.Second,
	keep:  10 * time.Second,
	now:   time.Now,
}

// find is the first line of database that match accepts; match is told whether it comes from
// the file.
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
	what := map[string]string{"passwd": "user", "group": "group", "initgroups": "user", "ahosts": "host"}[database]
	return errs.New(errs.NotFound, "%s %s does not exist", what, key)
}

// eachLine calls f with the lines of a file of /etc until it says stop.
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

// remember keeps an answer for a while; a lookup that failed for want of time is
// asked again.
func (n *source) remember(q question, text string, err error) {
	if errs.KindOf(err) == errs.Unavailable && err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers == nil || len(n.answers) >= maxAnswers {
		n.answers = map[question]answer{}
	}
	n.answers[q] = answer{text, err, n.now().Add(n.keep)}
}

func (n *source) remembered(q question) (answer, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, ok := n.answers[q]
	return a, ok && n.now().Before(a.until)
}
