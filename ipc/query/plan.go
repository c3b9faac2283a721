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
