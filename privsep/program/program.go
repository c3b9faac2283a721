// Package program opens the programs of the gateway's processes, and starts them
// under the identity that each may have.
package program

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// Program is what the processes of a role are started from.
type Program struct {
	File    *os.File
	As      []security.Identity // of a process, the best first
	missing error               // why there is no file
	Argv    []string
}

// Set has the programs of all roles.
type Set map[ipc.Role]*Program

// roles have a program each.
var roles = []ipc.Role{ipc.Worker, ipc.Dispatcher, ipc.Keeper, ipc.Resolver, ipc.Auditor, ipc.Exporter}

// Name returns the file name of a role's program.
func Name(role ipc.Role) string { return "schedrestd-" + role.String() }

// Open opens the programs beside this one; argv has their arguments. From here on they are executed by their descriptors. A
// service's program that can't be opened is an error when it is started. worker
// is the identity of workers, and root whether this process can change identities.
func Open(worker security.Identity, root bool, argv map[ipc.Role][]string) (Set, error) {
	s := Set{}
	for _, role := range roles {
		p := &Program{Argv: append([]string{Name(role)}, argv[role]...)}
		s[role] = p
		var err error
		if role == ipc.Worker {
			if p.File, err = spawn.OpenWorker("", worker, root); err != nil {
				return s, err
			}
			continue
		}
		if p.As, err = identities(worker, root); err != nil {
			return s, err
		}
		if p.File, err = spawn.OpenProgram(role.String(), "", Name(role), p.As[0], root, p.As[0].UID, worker.UID); err != nil {
			p.missing = errs.New(errs.Invalid, "%v", err).WithHint("%s", errs.HintOf(err))
		}
	}
	return s, nil
}

// Close closes the programs.
func (s Set) Close() {
	for _, p := range s {
		if p.File != nil {
			p.File.Close()
		}
	}
}

// identities returns the identities that a service may have, the best first. As root it is
// a uid that no user and no worker has: a captured worker can neither stop nor trace the service.
func identities(worker security.Identity, root bool) (list []security.Identity, err error) {
	if !root {
		return []security.Identity{worker}, nil
	}
	for _, id := range become.UnusedIDs() {
		list = append(list, security.Identity{Name: fmt.Sprintf("uid %d", id), UID: id, GID: id})
	}
	if len(list) == 0 {
		return nil, errs.New(errs.Unavailable, "no random number for the uid of a service")
	}
	return list, nil
}

// Start starts a process with the first identity of as that exists in this user
// namespace. setup is its first message.
func (p *Program) Start(from *spawn.Spawner, as []security.Identity, b spawn.Spec, setup ipc.Message) (started *spawn.Started, err error) {
	if p.missing != nil {
		return nil, p.missing
	}
	b.Program, b.Argv = p.File, p.Argv
	for _, b.Who = range as {
		started, err = from.Start(b, func(tasks uint64) ipc.Message {
			switch s := setup.(type) {
			case *ipc.ServiceSetup:
				s.Files, s.Tasks = uint32(b.Files), uint32(tasks)
			case *ipc.Setup:
				s.Tasks = uint32(tasks)
			}
			return setup
		})
		if !errors.Is(err, unix.EINVAL) { // EINVAL: no such id in this user namespace
			break
		}
	}
	return started, err
}
