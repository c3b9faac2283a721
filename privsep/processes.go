package privsep

import (
	"errors"
	"fmt"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// runningProcess is a process that the dispatcher asked for.
type runningProcess struct {
	*spawn.Child
	isUsersOwn bool // it runs as the user of a connection, or of a token
	isAuditor  bool // it gets files later, too
}

// handleStart starts a process that the dispatcher asks for, and sends the
// dispatcher a channel to the process. It returns an error if the dispatcher
// broke the protocol.
func (m *monitor) handleStart(d *dispatcherProcess, r *ipc.StartProcess) error {
	g, c := m.generations[r.Generation], m.config()
	switch {
	case r.Number <= d.lastProcessNumber || g == nil || m.programs[r.Role] == nil || r.Role == ipc.Dispatcher || r.Role == ipc.Keeper && (g != m.nextGeneration || g.resolver == nil) || r.Threads < 1 || r.Threads > c.Threads:
		return fmt.Errorf("requested process %d of generation %d with %d threads, with the role %s", r.Number, r.Generation, r.Threads, r.Role)
	case r.Role == ipc.Auditor && m.auditLog == nil:
		return errors.New("requested an auditor without an audit log")
	case r.Role == ipc.Output && (!c.Switches.Output || m.service.Root && (r.Client == 0 || !c.Switches.BecomeUser && r.Client&1 != 0)), r.Role == ipc.Credential && (!c.Switches.Credentials || !m.service.Root || r.Client&1 == 0 || g.vouches == nil):
		return errors.New("requested a process of a user, but for no user whom the kernel or the keeper has named")
	case len(d.processes) >= c.maxProcesses():
		return fmt.Errorf("requested more than %d processes", c.maxProcesses())
	}
	d.lastProcessNumber = r.Number
	child, err := m.startProcess(g, r)
	if err != nil {
		m.send(&ipc.StartFailed{Number: r.Number, Failure: ipc.FailureOf(err)})
		return nil
	}
	p := &runningProcess{child, r.Client != 0 && (r.Role != ipc.Worker || c.Switches.BecomeUser), r.Role == ipc.Auditor}
	d.processes[r.Number] = p
	if !p.isAuditor {
		m.handOverProcess(d, r.Number, child)
		if r.Role == ipc.Resolver { // it gets a channel to each keeper later
			g.resolver = child.Channel
		} else {
			child.Channel.Close()
		}
		return nil
	}
	go func() { // the audit log may be on a file system that hangs
		m.auditLog.SendFiles(child.Channel)
		m.post(func() { m.handOverProcess(d, r.Number, child) })
	}()
	return nil
}

// handOverProcess sends the dispatcher a channel to a process, and the reading
// end of the process's log. When the process exits, the parent tells the
// dispatcher.
func (m *monitor) handOverProcess(d *dispatcherProcess, number uint32, child *spawn.Child) {
	_ = child.Channel.WithFD(func(channel int) error {
		m.sendTo(d, &ipc.ProcessStarted{Number: number, PID: uint32(child.PID), UID: child.UID, GID: child.GID, OwnUserns: child.OwnUserns}, channel, int(child.Log.Fd()))
		return nil
	})
	child.Log.Close()
	go func() {
		<-child.Exited
		m.post(func() {
			delete(d.processes, number)
			child.Channel.Close()
			m.sendTo(d, &ipc.ProcessExited{Number: number, Status: uint32(child.Status)})
		})
	}()
}

// startProcess starts a process of g. If the process is a service, startProcess
// also sends it the files that only this service may have. If that fails, it kills
// the process.
func (m *monitor) startProcess(g *generation, r *ipc.StartProcess) (child *spawn.Child, err error) {
	c := g.config
	spec := spawn.Spec{Role: r.Role, Threads: int(r.Threads), Files: uint64(c.Setup.Files), Writes: r.Role == ipc.Keeper && c.Secrets.Tokens.Register != ""}
	p, setup := m.programs[r.Role], c.serviceSetup()
	id := p.Identity
	if r.Role == ipc.Worker || r.Role == ipc.Output || r.Role == ipc.Credential {
		if id, err = m.identityFor(r); err != nil {
			return nil, err
		}
	}
	switch r.Role {
	case ipc.Worker:
		worker := c.Setup
		worker.Requests = r.Requests
		child, err = m.startConfined(p, id, spec, &worker)
	case ipc.Output, ipc.Credential, ipc.Resolver:
		child, err = p.Start(m.resolverSpawner, id, spec, &setup)
	default:
		if r.Role == ipc.Auditor && c.Audit.Claims != "" || spec.Writes {
			setup.Sandbox |= ipc.SandboxFile
		}
		child, err = m.startConfined(p, id, spec, &setup)
	}
	switch {
	case err != nil:
		return nil, err
	case r.Role == ipc.Keeper:
		err = m.connectKeeper(g, child)
	case r.Role == ipc.Credential:
		err = introduce(r.Role, func(fd int) error { return g.vouches.TrySend(&ipc.KeeperChannel{Client: r.Client}, fd) }, child.Channel)
	case r.Role == ipc.Exporter:
		for _, l := range m.metricsListeners {
			err = errors.Join(err, ipc.IgnoreClosed(child.Channel.TrySend(new(ipc.MetricsFD), l.FD())))
		}
	}
	if err != nil { // it would run without the knowledge of the dispatcher
		child.Discard()
	}
	return child, err
}

// identityFor returns the identity of a worker that is to serve the connection
// r.Client, or of a process of this connection's user, or of a user for whom the
// keeper vouches. A
// number of 0 means that the process is not meant for a particular connection.
// Workers have no supplementary groups, since they open no files.
func (m *monitor) identityFor(r *ipc.StartProcess) (security.Identity, error) {
	switch {
	case m.inetdClient != nil:
		return m.service.Identity, nil
	case r.Client == 0 || !m.config().Switches.BecomeUser && (r.Role == ipc.Worker || !m.service.Root):
		return m.config().defaultIdentity(m.service), nil
	}
	id, ok := m.clients.Find(r.Client)
	if !ok {
		return security.Identity{}, errs.New(errs.Unavailable, "the connection for which the %s was requested is closed, or its token is no longer verified", r.Role)
	}
	if r.Role == ipc.Worker {
		id.Groups = nil
	}
	return id, nil
}

// endAbandonedWorkers kills the workers of users who have had no connection for
// Limits.Absence. Otherwise a compromised dispatcher could act as such a user
// through a worker that it never ends.
func (m *monitor) endAbandonedWorkers() {
	seen := m.clients.Seen(time.Now(), m.config().Limits.Absence)
	if m.dispatcher == nil || m.inetdClient != nil {
		return
	}
	for _, p := range m.dispatcher.processes {
		if p.isUsersOwn && !seen(p.UID, p.GID) {
			m.config().Log.Error("worker terminated", "uid", p.UID, "because", "its user has no connection")
			p.Kill()
		}
	}
}
