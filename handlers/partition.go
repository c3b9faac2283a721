package handlers

import (
	"schedrestd/errs"
	"schedrestd/model"
)

// maxMembers bounds how many places of nodes in partitions are looked at: host list
// expressions are short and can stand for billions.
const maxMembers = 4_000_000

// membership is which partitions each node is in. A node's own record does not say.
func (h *handler) membership(c *call) (map[string][]string, error) {
	partitions := map[string][]string{}
	err := h.eachMember(c, func(node, partition string) {
		partitions[node] = append(partitions[node], partition)
	})
	return partitions, err
}

// partitionsOf is which partitions one node is in.
func (h *handler) partitionsOf(c *call, node string) (partitions []string, err error) {
	err = h.eachMember(c, func(member, partition string) {
		if member == node {
			partitions = append(partitions, partition)
		}
	})
	return partitions, err
}

func (h *handler) eachMember(c *call, see func(node, partition string)) error {
	members := 0
	return h.Controller.Partitions(c.ctx, c.cred, func(p *model.Partition) error {
		for node := range model.Hosts(p.Nodes) {
			if members++; members > maxMembers {
				return errs.New(errs.BadAnswer, "the controller's partitions have too many nodes")
			}
			see(node, p.Name)
		}
		return nil
	})
}
