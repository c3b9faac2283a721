package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep"
)

// reloader reads the configuration, at start and again when a SIGHUP asks for it. What the command
// line and the environment said stays said.
type reloader struct {
	o       options
	path    string
	mode    mode
	usual   slog.Level // when nobody says how much to log
	level   slog.LevelVar
	log     *slog.Logger
	started privsep.Config
	last    reading

	subordinates subordinates
}

// reading is what became of a configuration that could be read.
type reading struct {
	privsep.Config
	level slog.Level
	idle  []string // debug flags that do nothing here
}

func newReloader(o options, path string, errOut io.Writer) *reloader {
	r := &reloader{o: o, path: path, usual: slog.LevelInfo}
	if abs, err := filepath.Abs(path); err == nil {
		r.path = abs // whatever becomes of the working directory
	}
	r.level.Set(o.level(r.usual, nil))
	r.log = newLog(errOut, &r.level)
	return r
}

// start is what the parent serves with.
func (r *reloader) start() (privsep.Config, error) {
	r.level.Set(r.o.level(r.usual, nil))
	if r.o.verbose > mostVee {
		r.log.Warn("-v counts six times at the most", "given", int(r.o.verbose))
	}
	warnUnread(os.Environ(), r.log)
	c, err := r.read()
	r.started = c
	if err == nil {
		r.Accepted()
	}
	return c, err
}

// read makes a Config of the file as it is now, and changes nothing: that is Accepted's.
func (r *reloader) read() (privsep.Config, error) {
	cluster, err := configuration(r.path, r.log)
	if err != nil {
		return privsep.Config{}, err
	}
	level := r.o.level(r.usual, cluster)
	c, err := r.o.parent(cluster, level, r.mode, r.log)
	if err != nil {
		return c, err
	}
	c.OwnerOf = r.subordinates.owner
	r.last = reading{c, level, withoutEffect(r.o.flagsOf(cluster))}
	return c, nil
}

// Accepted is for privsep: what was read last is used from now on, for the log too, and
// subordinate uids are read again.
func (r *reloader) Accepted() {
	c, verbose := r.last.Setup, levels[infoLevel+1].level
	r.level.Set(r.last.level)
	r.subordinates.read(subuidFile, passwdFile, r.log)
	r.log.Log(context.Background(), verbose, "configuration", "path", r.path, "cluster", c.Cluster,
		"jwt", c.JWT, "local", c.Local, "data_parsers", c.Parsers, "controllers", c.Controllers, "accounting", c.Accounting)
	if len(r.last.idle) > 0 {
		r.log.Log(context.Background(), verbose, "debug flags that concern other daemons", "flags", r.last.idle)
	}
}

// Reload is for privsep. What was opened or dropped for good at the start stays as it was,
// and is named.
func (r *reloader) Reload() (ipc.Setup, privsep.Secrets, error) {
	next, err := r.read()
	if errs.KindOf(err) == errs.Denied && os.Geteuid() == 0 {
		// CAP_DAC_OVERRIDE went when the listeners were open.
		return ipc.Setup{}, privsep.Secrets{}, &errs.Error{Kind: errs.Denied, Err: err,
			Message: "a file can't be reread, since the running parent reads only what root may without privileges",
			Hint:    "let root own the file, or restart"}
	}
	if err != nil {
		return ipc.Setup{}, privsep.Secrets{}, err
	}
	for _, what := range r.fixed(next) {
		r.log.Warn("changed in the configuration, but needs a restart", "key", what, "configuration", r.path)
	}
	return next.Setup, next.Secrets, nil
}

// fixed names what next has otherwise, and a running parent can't change.
func (r *reloader) fixed(next privsep.Config) (list []string) {
	if next.SchedUser != r.started.SchedUser {
		list = append(list, "SchedUser")
	}
	if r.o.socketMode == "" && hasUnix(r.o.listen) && next.Setup.JWT != r.started.Setup.JWT {
		list = append(list, "AuthAltTypes (for the mode of UNIX sockets)")
	}
	return list
}

// configuration reads the cluster's configuration and logs what is odd in it.
func configuration(path string, log *slog.Logger) (*conf.Cluster, error) {
	cluster, warnings, err := conf.Read(path)
	for _, w := range warnings {
		log.Warn(w.String())
	}
	if err != nil {
		return nil, err
	}
	if _, err := schedUser(cluster); absent(cluster, err) {
		log.Warn("he can own no file here and serve no socket: " + err.Error())
	}
	return cluster, judge(cluster)
}
