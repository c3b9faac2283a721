// Package program opens the programs of the gateway's processes. It starts each
// process under the identity of its role.
package program

import (
	"os"
	"slices"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// Program is the program file for all processes of a role.
type Program struct {
	File     *os.File
	Identity security.Identity // identity of a service; for workers, the service identity
	openErr  error             // why there is no file
	Argv     []string
}

// Set has the programs of all roles.
type Set map[ipc.Role]*Program

// Name returns the file name of a role's program.
func Name(role ipc.Role) string { return "schedrestd-" + role.String() }

// Open opens the programs in the directory of the running program. The parent
// later executes these open files, even if other files have been put in their
// places. If a service's program can't be opened, Open still succeeds, and
// Start returns the error for that service.
//
// The argv argument holds the command-line arguments for each role.
func Open(service identity.Service, argv map[ipc.Role][]string) (Set, error) {
	s := Set{}
	for _, role := range append(slices.Clip(identity.Roles), ipc.Output, ipc.Credential) {
		// If the parent is root, no worker has the identity of a service, so a
		// captured worker can neither stop nor trace the service. If the parent
		// is not root, services have the identity of the workers.
		p := &Program{Argv: append([]string{Name(role)}, argv[role]...), Identity: service.Identity}
		if user, ok := service.Users[role]; ok && role != ipc.Worker {
			p.Identity = user
		}
		var err error
		if p.File, err = spawn.OpenProgram(role.String(), "", Name(role), p.Identity, service.Root, p.Identity.UID, service.UID); err != nil {
			p.openErr = errs.New(errs.Invalid, "%v", err).WithHint("%s", errs.HintOf(err))
			if role == ipc.Worker {
				return s, err
			}
		}
		s[role] = p
	}
	return s, nil
}

// Start starts a process with the identity id. It adds the process's limits to
// setup, and sends setup to the process as the first message.
func (p *Program) Start(spawner *spawn.Spawner, id security.Identity, spec spawn.Spec, setup ipc.Message) (*spawn.Child, error) {
	if p.openErr != nil {
		return nil, p.openErr
	}
	spec.Program, spec.Argv, spec.Identity = p.File, p.Argv, id
	return spawner.Start(spec, func(tasks uint64) ipc.Message {
		switch s := setup.(type) {
		case *ipc.ServiceSetup:
			s.Files, s.Tasks = uint32(spec.Files), uint32(tasks)
		case *ipc.Setup:
			s.Tasks = uint32(tasks)
		}
		return setup
	})
}
