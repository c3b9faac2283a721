package handlers

import (
	"context"
	"slices"

	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// Limits on the nodes in a controller's partitions. A short host list can
// expand to billions of nodes.
const (
	maxMembers = 2_000_000 // total number of nodes in all partitions
	maxNodes   = 200_000   // number of different names among them
)

// membership maps nodes to their partitions, which are not in a node's record.
// Many nodes are in the same partitions, so each combination of partitions is
// stored once.
type membership struct {
	sets     [][]string        // sets[0] is empty
	setIndex map[string]int    // node to index in sets
	extended map[extension]int // maps a set and an added partition to the resulting set
}

type extension struct {
	set       int
	partition string
}

// partitions returns the partitions of a node.
func (m *membership) partitions(node string) []string { return m.sets[m.setIndex[node]] }

func (m *membership) add(node, partition string) {
	from := m.setIndex[node]
	to, known := m.extended[extension{from, partition}]
	if !known {
		to = len(m.sets)
		m.sets = append(m.sets, append(slices.Clip(m.sets[from]), partition))
		m.extended[extension{from, partition}] = to
	}
	m.setIndex[node] = to
}

// allPartitions is a query for all partitions, including hidden ones.
var allPartitions = model.Query{Flags: model.ShowAll, Undated: true}

// membership requests the partitions from the controller, and returns the
// partitions of each node.
func (h *handler) membership(c *rest.Call) (*membership, error) {
	return h.members(c, func(*model.Partition) error { return nil })
}

// members returns the same as membership. It also calls the function each for
// every partition.
func (h *handler) members(c *rest.Call, each func(*model.Partition) error) (*membership, error) {
	return h.membersOf(c.Context(), c.Credential(), each)
}

func (h *handler) membersOf(ctx context.Context, cred model.Credential, each func(*model.Partition) error) (*membership, error) {
	m := &membership{sets: [][]string{nil}, setIndex: map[string]int{}, extended: map[extension]int{}}
	members := 0
	_, err := h.Controller.Partitions(ctx, cred, allPartitions, func(p *model.Partition) error {
		for node := range model.Hosts(p.Nodes) {
			m.add(node, p.Name)
			if members++; members > maxMembers || len(m.setIndex) > maxNodes {
				return errs.New(errs.BadAnswer, "the controller's partitions have too many nodes")
			}
		}
		return each(p)
	})
	return m, err
}

// partitionsOf returns the partitions of one node.
func (h *handler) partitionsOf(c *rest.Call, node string) (partitions []string, err error) {
	_, err = h.Controller.Partitions(c.Context(), c.Credential(), allPartitions, func(p *model.Partition) error {
		if model.HostlistHas(p.Nodes, node) {
			partitions = append(partitions, p.Name)
		}
		return nil
	})
	return partitions, err
}
