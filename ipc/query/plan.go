package query

import (
	"slices"

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

// OwnerOf returns the user that the subordinate uid belongs to. If no range
// contains uid, OwnerOf returns uid itself. The ranges must be in ascending
// order.
func OwnerOf(ranges []ipc.Subuids, uid uint32) uint32 {
	i, found := slices.BinarySearchFunc(ranges, uid, func(r ipc.Subuids, uid uint32) int {
		switch {
		case r.Last < uid:
			return -1
		case r.First > uid:
			return 1
		}
		return 0
	})
	if found {
		return ranges[i].Owner
	}
	return uid
}
