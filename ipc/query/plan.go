package query

import "schedrestd/ipc"

// SendPlan sends p with all its parts.
func SendPlan(c *ipc.Channel, p *ipc.WholePlan) error {
	err := c.Send(&p.Plan)
	for _, l := range append(p.Listen[:len(p.Listen):len(p.Listen)], p.Metrics...) {
		if err == nil {
			err = c.Send(&ipc.PlanListen{Listen: l})
		}
	}
	for rest := p.Ranges; len(rest) > 0 && err == nil; {
		n := min(len(rest), ipc.SubuidsAtOnce)
		err = c.Send(&ipc.PlanSubuids{Ranges: rest[:n]})
		rest = rest[n:]
	}
	if err == nil {
		err = c.Send(&ipc.PlanSetup{Setup: p.Setup})
	}
	return err
}
