package dbd

import (
	"context"
	"slices"

	"schedrestd/bundled/dbd/catalog"
	"schedrestd/conf"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// resources lists the trackable resources that this daemon supports. They are
// Slurm's first four resources, which have the same numbers in every cluster.
var resources = []model.TRES{
	{ID: cpu, Type: "cpu"}, {ID: mem, Type: "mem"}, {ID: energy, Type: "energy"}, {ID: node, Type: "node"},
}

const (
	cpu uint32 = iota + 1
	mem
	energy
	node
)

// listResponse returns an answer with the given records. If records is nil, the
// answer contains an empty list, because nil would be encoded as null.
func listResponse[T any](records []T) message.ListResponse[T] {
	if records == nil {
		records = []T{}
	}
	return message.ListResponse[T]{Records: codec.Stream[T]{List: records}}
}

// handleTRES answers AccountingGetTRES (DBD_GET_TRES).
func (d *Daemon) handleTRES(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.GetTRES
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	list := []model.TRES{}
	for _, t := range resources {
		if catalog.Matches(q.IDs, digits(t.ID)) && catalog.Matches(q.Types, t.Type) && catalog.Matches(q.Names, t.Name) {
			list = append(list, t)
		}
	}
	return message.AccountingGotTRES, &message.TRESList{ListResponse: listResponse(list)}, nil
}

// handleClusters answers AccountingGetClusters (DBD_GET_CLUSTERS).
func (d *Daemon) handleClusters(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.GetClusters
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	list := d.records(r.Session).ListClusters(&q.ClusterFilter)
	if q.WithUsage {
		u, err := d.usageOf(ctx, r, q.Names, q.UsageStart, q.UsageEnd, model.Opt[uint32]{})
		if err != nil {
			return 0, nil, err
		}
		u.ofClusters(list)
	}
	return message.AccountingGotClusters, &message.Clusters{ListResponse: listResponse(list)}, nil
}

// handleAssociations answers AccountingGetAssocs (DBD_GET_ASSOCS) with the
// associations that the client may see.
func (d *Daemon) handleAssociations(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.GetAssociations
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	list := d.view(r).filterAssociations(d.records(r.Session).ListAssociations(&q.AssocFilter))
	if err := d.addUsage(ctx, r, &q.AssocFilter, list); err != nil {
		return 0, nil, err
	}
	return message.AccountingGotAssocs, &message.Associations{ListResponse: listResponse(list)}, nil
}

// handleAccounts answers AccountingGetAccounts (DBD_GET_ACCOUNTS) with the
// accounts that the client may see.
func (d *Daemon) handleAccounts(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.GetAccounts
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	list, view := d.records(r.Session).ListAccounts(&q.AccountFilter), d.view(r)
	list = slices.DeleteFunc(list, func(a model.Account) bool { return !view.seesAccount(a.Name) })
	for i := range list {
		list[i].Associations = view.filterAssociations(list[i].Associations)
		list[i].Coordinators = slices.DeleteFunc(list[i].Coordinators, func(c model.Coordinator) bool {
			return !view.seesUser(c.Name)
		})
	}
	return message.AccountingGotAccounts, &message.Accounts{ListResponse: listResponse(list)}, nil
}

// handleUsers answers AccountingGetUsers (DBD_GET_USERS) with the users that
// the client may see.
func (d *Daemon) handleUsers(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.GetUsers
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	list, view := d.records(r.Session).ListUsers(&q.UserFilter), d.view(r)
	list = slices.DeleteFunc(list, func(u model.User) bool { return !view.seesUser(u.Name) })
	return message.AccountingGotUsers, &message.Users{ListResponse: listResponse(list)}, nil
}

// handleQOS answers AccountingGetQOS (DBD_GET_QOS).
func (d *Daemon) handleQOS(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.GetQOS
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	return message.AccountingGotQOS, &message.QOSList{ListResponse: listResponse(d.records(r.Session).ListQOS(&q.QOSFilter))}, nil
}

// A view determines which users and accounts a client sees.
type view struct {
	self     string          // the client's own name
	users    bool            // the client sees other users
	accounts map[string]bool // accounts that the client sees; nil: all
}

// view returns the client's view, which depends on PrivateData=.
func (d *Daemon) view(r *server.Request) view {
	v := view{self: d.userName(r)}
	isOperator := d.adminLevel(r) >= catalog.Operator
	v.users = isOperator || !d.privacy.OwnerFilter(r.Identity.UID, conf.PrivateUsers).Set
	if !isOperator && d.privacy.OwnerFilter(r.Identity.UID, conf.PrivateAccounts).Set {
		v.accounts = map[string]bool{}
		if v.self != "" {
			for _, a := range d.records(r.Session).ListAssociations(&model.AssocFilter{Users: []string{v.self}}) {
				v.accounts[a.Account] = true
			}
		}
	}
	return v
}

func (v view) seesUser(name string) bool    { return v.users || name != "" && name == v.self }
func (v view) seesAccount(name string) bool { return v.accounts == nil || v.accounts[name] }

// filterAssociations returns the associations in list that the client sees.
func (v view) filterAssociations(list []model.Association) []model.Association {
	return slices.DeleteFunc(list, func(a model.Association) bool {
		return !v.seesAccount(a.Account) || a.User != "" && !v.seesUser(a.User)
	})
}
