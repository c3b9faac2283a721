package dbd

import (
	"context"
	"slices"
	"strconv"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// resources are the trackable resources that this daemon knows: the first four
// of Slurm, whose numbers are the same everywhere.
var resources = []model.TRES{{ID: cpu, Type: "cpu"}, {ID: mem, Type: "mem"}, {ID: energy, Type: "energy"}, {ID: node, Type: "node"}}

const (
	cpu uint32 = iota + 1
	mem
	energy
	node
)

// listed returns an answer with these records.
func listed[T any](records []T) message.Listed[T] {
	return message.Listed[T]{Records: codec.Stream[T]{List: records}}
}

// tres answers AccountingGetTRES (DBD_GET_TRES).
func (d *Daemon) tres(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.GetTRES
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	list := []model.TRES{}
	for _, t := range resources {
		if in(q.IDs, strconv.FormatUint(uint64(t.ID), 10)) && in(q.Types, t.Type) && in(q.Names, t.Name) {
			list = append(list, t)
		}
	}
	return message.AccountingGotTRES, &message.TRESList{Listed: listed(list)}, nil
}

// in reports whether a filter matches s. An empty filter matches everything.
func in(filter []string, s string) bool { return len(filter) == 0 || slices.Contains(filter, s) }

// clusters answers AccountingGetClusters (DBD_GET_CLUSTERS) with the clusters
// of recorded jobs. The addresses of their controllers are unknown.
func (d *Daemon) clusters(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.GetClusters
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	names, err := d.store.Clusters(ctx)
	if err != nil {
		return 0, nil, err
	}
	list := []model.Cluster{}
	for _, name := range names {
		// These clusters have no federation, no protocol version and no flags,
		// so filters on those match none.
		if in(q.ClusterFilter.Names, name) && len(q.Federations) == 0 && len(q.RPCVersions) == 0 && q.Classification == 0 && q.Flags.Or(0) == 0 {
			list = append(list, model.Cluster{Name: name, RootAssoc: model.Association{Account: "root", Cluster: name}})
		}
	}
	return message.AccountingGotClusters, &message.Clusters{Listed: listed(list)}, nil
}

// This daemon has no associations, accounts, users or qualities of service.
// Those lists are empty for every filter.

func (d *Daemon) associations(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	return message.AccountingGotAssocs, &message.Associations{Listed: listed([]model.Association{})}, r.Decode(new(message.GetAssociations))
}

func (d *Daemon) accounts(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	return message.AccountingGotAccounts, &message.Accounts{Listed: listed([]model.Account{})}, r.Decode(new(message.GetAccounts))
}

func (d *Daemon) users(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	return message.AccountingGotUsers, &message.Users{Listed: listed([]model.User{})}, r.Decode(new(message.GetUsers))
}

func (d *Daemon) qos(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	return message.AccountingGotQOS, &message.QOSList{Listed: listed([]model.QOS{})}, r.Decode(new(message.GetQOS))
}
