package parent

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"schedrestd/become"
	"schedrestd/gateway/plan"
	"schedrestd/ipc"
	"schedrestd/privsep"
	"schedrestd/privsep/identity"
)

// Config contains the parent's settings that tests change. A test sends it to
// the parent as JSON.
type Config struct {
	Listen, Metrics                                      []ipc.Listen
	Netns, ControllerNetns                               string
	Service                                              ipc.Service
	Switches                                             ipc.Switches
	Setup                                                ipc.Setup
	Connections, PerSource, Identities, Workers, Threads int
	SocketMode                                           fs.FileMode
	SocketGroup                                          *uint32
	Audit                                                ipc.Audit
	ipc.Secrets

	Argv                              map[ipc.Role][]string
	DeathTests                        bool          // run all death tests; most tests skip them to save time
	StartLimit, Silence, Watch, Still time.Duration // 0 stands for the usual value
	Absence, Stop                     time.Duration // the same
	Mode                              ipc.Mode      // 0: serve
	Binary                            string        `json:"-"` // what to execute as the parent; "" stands for the usual program
}

// Config returns the configuration that schedrestd-config would make. If the test sets
// neither number, there are four threads and two workers.
func (c Config) Config() privsep.Config {
	run := ipc.Run{Switches: c.Switches, LogLevel: c.Setup.LogLevel, Audit: c.Audit, Netns: c.Netns, ControllerNetns: c.ControllerNetns,
		Numbers: ipc.Numbers{Connections: uint32(c.Connections), PerSource: uint32(c.PerSource), Identities: uint32(c.Identities), Workers: uint32(c.Workers), Threads: uint32(cmp.Or(c.Threads, 4))}}
	p := ipc.PackedPlan{Listen: c.Listen, Metrics: c.Metrics, Setup: c.Setup, Plan: ipc.Plan{Mode: c.Mode, Run: run, Service: c.Service, SocketMode: uint16(c.SocketMode), Secrets: c.Secrets}}
	if c.SocketGroup != nil {
		p.HasSocketGroup, p.SocketGID = true, *c.SocketGroup
	}
	if err := plan.Complete(&p.Plan, &p.Setup, &p.Listen); err != nil {
		panic(err)
	}
	taken := map[uint32]bool{}
	for _, role := range identity.Roles {
		var id uint32
		for id == 0 || taken[id] {
			var err error
			if id, err = become.UnusedID(); err != nil {
				panic(err)
			}
		}
		taken[id] = true
		p.Users = append(p.Users, ipc.RoleUser{Role: role, Name: fmt.Sprintf("uid %d", id), UID: id, GID: id})
	}
	d := privsep.Defaults
	limits := privsep.Limits{Start: cmp.Or(c.StartLimit, d.Start), Ping: cmp.Or(c.Silence, d.Ping), KeyCheck: cmp.Or(c.Watch, d.KeyCheck), Settle: cmp.Or(c.Still, d.Settle),
		Stop: cmp.Or(c.Stop, d.Stop), PeerCheck: cmp.Or(c.Absence, d.PeerCheck), Absence: cmp.Or(c.Absence, d.Absence)}
	return privsep.Config{PackedPlan: p, Level: new(slog.LevelVar), Limits: limits, Argv: c.Argv}
}
