package privsep

import (
	"errors"
	"fmt"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// startFor starts a process that the dispatcher asks for, and sends the
// dispatcher the channel to it. An error means that the dispatcher broke the
// protocol.
func (m *monitor) startFor(d *dispatcherProcess, r *ipc.Start) error {
	g := m.generations[r.Generation]
	if r.Number <= d.number || g == nil || m.programs[r.Role] == nil || r.Role == ipc.Dispatcher || r.Role == ipc.Keeper && g != m.next || r.Threads < 1 || r.Threads > m.config.Threads {
		return fmt.Errorf("requested process %d of generation %d with %d threads, with the role %s", r.Number, r.Generation, r.Threads, r.Role)
	}
	if most := m.config.mostProcesses(); len(d.processes) >= most {
		return fmt.Errorf("requested more than %d processes", most)
	}
	d.number = r.Number
	if r.Role == ipc.Auditor && m.audit == nil {
		return errors.New("requested an auditor without an audit log")
	}
	started, err := m.startOne(g, r)
	if err != nil {
		m.send(&ipc.Unstarted{Number: r.Number, Failure: ipc.Fail(err)})
		return nil
	}
	d.processes[r.Number] = started.Process
	if r.Role != ipc.Auditor {
		m.handOver(d, r.Number, started)
		started.Channel.Close()
		return nil
	}
	d.auditors[r.Number] = started.Channel
	go func() { // the file may be on a file system that hangs
		m.audit.Give(started.Channel)
		m.do(func() { m.handOver(d, r.Number, started) })
	}()
	return nil
}

// handOver sends the dispatcher the channel to a process and the reading end of
// the process's log. It reports to the dispatcher when the process has exited.
func (m *monitor) handOver(d *dispatcherProcess, number uint32, started *spawn.Started) {
	_ = started.Channel.Pass(func(channel int) error {
		m.sendTo(d, &ipc.Started{Number: number, PID: uint32(started.PID), UID: started.UID, GID: started.GID, Foreign: started.Foreign}, channel, int(started.Log.Fd()))
		return nil
	})
	started.Log.Close()
	go func() {
		<-started.Dead
		m.do(func() {
			delete(d.processes, number)
			if channel := d.auditors[number]; channel != nil {
				channel.Close()
				delete(d.auditors, number)
			}
			m.sendTo(d, &ipc.Ended{Number: number, Status: uint32(started.Ended)})
		})
	}()
}

// startOne starts a process of g. A service also gets the files that only it may have.
func (m *monitor) startOne(g *generation, r *ipc.Start) (started *spawn.Started, err error) {
	c := g.config
	b := spawn.Spec{Role: r.Role, Threads: int(r.Threads), Files: c.files()}
	p, setup := m.programs[r.Role], c.serviceSetup()
	switch r.Role {
	case ipc.Worker:
		who, err := m.identityFor(r.Client)
		if err != nil {
			return nil, err
		}
		worker := c.Setup
		worker.Requests = r.Requests
		return m.startConfined(p, who, b, &worker)
	case ipc.Resolver:
		return p.Start(m.plain, p.As, b, &setup)
	}
	if r.Role == ipc.Auditor && c.Audit.Claims != "" {
		setup.Seal |= ipc.SealClaims
	}
	started, err = m.startConfined(p, p.As, b, &setup)
	if err == nil && r.Role == ipc.Keeper {
		secret, fds := g.keys.ForKeeper()
		err = ipc.UnlessGone(started.Channel.TrySend(secret, fds...))
	}
	if err == nil && r.Role == ipc.Exporter {
		for _, l := range m.metrics {
			err = errors.Join(err, ipc.UnlessGone(started.Channel.TrySend(new(ipc.MetricsFD), l.FD())))
		}
	}
	return started, err
}

// identityFor returns the identity of a worker for the connection with that number. The
// number 0 stands for no connection.
func (m *monitor) identityFor(connection uint64) (security.Identity, error) {
	if !m.config.Switches.BecomeUser || connection == 0 {
		return m.config.anyWorker(m.who), nil
	}
	who, ok := m.peers[connection]
	if !ok {
		return who, errs.New(errs.Unavailable, "the connection that its worker was for is closed")
	}
	return who, nil
}
