// Package service starts the unprivileged processes that work for the parent
// and for workers: the keeper, the resolver and the auditor.
//
// The parent treats them alike. A process of a service is started, sends Ready
// or its reason for failing, gets one end of a channel to each worker, and
// serves until its channel is closed. Messages that only one service sends are
// handled by the code that started it.
package service

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/relay"
	"schedrestd/privsep/spawn"
	"schedrestd/rate"
	"schedrestd/security"
)

// Options describes a service.
type Options struct {
	Role       ipc.Role
	Path       string            // of its program; "" for the one beside this program
	Argv       []string          // of its program, after the name
	Root       bool              // the parent was started as root
	Worker     security.Identity // of the workers
	Threads    int               // that run concurrently
	Files      uint64            // limit of open descriptors
	Quota      *relay.Quota      // for what its processes log
	StartLimit time.Duration     // for a process to send Ready
	Silence    time.Duration     // a process that answers no Ping for so long is killed
	Farewell   time.Duration     // for a process to exit when its channel is closed; 0: spawn.LastWords
	Log        *slog.Logger
}

// Spec has what the processes of a service are started from, in each generation.
type Spec struct {
	Options
	Program  *os.File
	missing  error               // why there is no program
	as       []security.Identity // of a process, the best first
	reported *rate.Bucket        // workers that its processes reported
}

// The limits on the workers that the processes of a service may report, at once
// and per second. Each of these workers is killed.
const (
	mostReported = 100
	reportedRate = .1
)

// Name returns the file name of a service's program.
func Name(role ipc.Role) string { return "schedrestd-" + role.String() }

// New opens the program of a service. A program that can't be opened is an error when it is started.
func New(o Options) (*Spec, error) {
	s := &Spec{Options: o, reported: rate.New(mostReported, reportedRate, time.Now())}
	var err error
	if s.as, err = identities(o); err != nil {
		return nil, err
	}
	if s.Program, err = spawn.OpenProgram(o.Role.String(), o.Path, Name(o.Role), s.as[0], o.Root, s.as[0].UID, o.Worker.UID); err != nil {
		s.missing = errs.New(errs.Invalid, "%v", err).WithHint("%s", errs.HintOf(err))
	}
	return s, nil
}

// identities returns the identities that a process may have, the best first. As root it is
// a uid that no user and no worker has: a captured worker can neither stop nor trace the service.
func identities(o Options) (list []security.Identity, err error) {
	if !o.Root {
		return []security.Identity{o.Worker}, nil
	}
	for _, id := range become.Strangers() {
		list = append(list, security.Identity{Name: fmt.Sprintf("uid %d", id), UID: id, GID: id})
	}
	if len(list) == 0 {
		return nil, errs.New(errs.Unavailable, "no random number for the uid of a service")
	}
	return list, nil
}

// Close closes the program.
func (s *Spec) Close() {
	if s != nil && s.Program != nil {
		s.Program.Close()
	}
}

// spawn starts a process of the service. setup lacks the limits of the process.
func (s *Spec) spawn(from *spawn.Spawner, setup ipc.ServiceSetup) (p *spawn.Process, err error) {
	if s.missing != nil {
		return nil, s.missing
	}
	for _, as := range s.as {
		born := spawn.Birth{Role: s.Role, Program: s.Program, Who: as, Argv: append([]string{Name(s.Role)}, s.Argv...), Threads: s.Threads, Files: s.Files}
		p, err = from.Start(born, s.Quota, func(_ *spawn.Process, tasks uint64) ipc.Message {
			setup.Files, setup.Tasks = uint32(s.Files), uint32(tasks)
			return &setup
		})
		if !errors.Is(err, unix.EINVAL) { // EINVAL: no such id in this user namespace
			break
		}
	}
	return p, err
}
