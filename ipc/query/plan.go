package query

import (
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// WholePlan is a Plan with all its parts, as schedrestd-config makes it. The
// parent receives it as an ipc.PackedPlan.
type WholePlan struct {
	ipc.Plan
	Listen  []ipc.Listen
	Metrics []ipc.Listen // listeners for scrapes
	Ranges  []ipc.Subuids
	Setup   work.Setup
}

// SendPlan sends p with all its parts.
func SendPlan(c *ipc.Channel, p *WholePlan) error {
	setup, err := p.Setup.Pack()
	if err == nil {
		err = c.Send(&p.Plan)
	}
	for _, l := range append(p.Listen[:len(p.Listen):len(p.Listen)], p.Metrics...) {
		if err == nil {
			err = c.Send(&ipc.PlanListen{Listen: l})
		}
	}
	for ranges := p.Ranges; len(ranges) > 0 && err == nil; {
		n := min(len(ranges), ipc.SubuidBatchSize)
		err = c.Send(&ipc.PlanSubuids{Ranges: ranges[:n]})
		ranges = ranges[n:]
	}
	if err == nil {
		err = c.Send(&ipc.PlanSetup{Setup: setup})
	}
	return err
}

// Facts for the page that --check-confinement prints, which the parent passes on
// (see ipc.FactPart).
const (
	FactBecome   = "become"   // become_user
	FactLocal    = "local"    // peers that the kernel identifies are served
	FactMunge    = "munge"    // workers connect to munged, or to a socket of auth/slurm
	FactDial     = "dial"     // workers connect to daemons over TCP; the value is a worker's limit on open descriptors
	FactTLS      = "tls"      // there is a TLS key
	FactTokens   = "tokens"   // there is a token key
	FactRequired = "required" // the configuration requires all parts
)
