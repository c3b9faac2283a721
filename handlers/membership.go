package handlers

import (
	"context"
	"slices"

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

// partitionsNamed returns the query for the partitions that the nodes of an
// answer with these flags name. Hidden ones are among them only with ShowAll, as
// with slurmrestd.
func partitionsNamed(flags model.Show) model.Query {
	return model.Query{Flags: flags & model.ShowAll, Undated: true}
}

// membership requests the partitions that a query with these flags shows, and
// returns the partitions of each node. It calls the function each, if it is not
// nil, for every partition.
func (h *handler) membership(ctx context.Context, cred model.Credential, flags model.Show, each func(*model.Partition) error) (*membership, error) {
	m := &membership{sets: [][]string{nil}, setIndex: map[string]int{}, extended: map[extension]int{}}
	members := 0
	_, err := h.Controller.Partitions(ctx, cred, partitionsNamed(flags), func(p *model.Partition) error {
		for node := range model.Hosts(p.Nodes) {
			m.add(node, p.Name)
			if members++; members > maxMembers || len(m.setIndex) > maxNodes {
				return errs.New(errs.BadAnswer, "the controller's partitions have too many nodes")
			}
		}
		if each == nil {
			return nil
		}
		return each(p)
	})
	return m, err
}

// partitionsOf returns the partitions of one node that a query with these flags
// shows.
func (h *handler) partitionsOf(ctx context.Context, cred model.Credential, flags model.Show, node string) (partitions []string, err error) {
	_, err = h.Controller.Partitions(ctx, cred, partitionsNamed(flags), func(p *model.Partition) error {
		if model.HostlistHas(p.Nodes, node) {
			partitions = append(partitions, p.Name)
		}
		return nil
	})
	return partitions, err
}
