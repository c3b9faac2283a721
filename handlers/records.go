package handlers

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	"schedrestd/api"
	"schedrestd/errs"
	"schedrestd/model"
)

// records asks for the names that records have numbers for: two short lists.
func (h *handler) records(c *call) (*api.Records, error) {
	r := &api.Records{TRES: map[uint32]model.TRES{}, QOS: map[uint32]string{}, Users: h.Users}
	err := h.Accounting.TRES(c.ctx, c.cred, model.TRESFilter{}, func(t *model.TRES) error {
		r.TRES[t.ID] = model.TRES{Type: t.Type, Name: t.Name}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The deleted too: what was recorded in their time still has their numbers.
	err = h.Accounting.QOS(c.ctx, c.cred, model.QOSFilter{Flags: model.QOSWithDeleted}, func(q *model.QOS) error {
		r.QOS[q.ID] = q.Name
		return nil
	})
	return r, err
}

// qosNumbers makes numbers of names, which is what the daemon compares.
func qosNumbers(r *api.Records, names []string, parameter string) ([]string, error) {
	var list []string
	for _, name := range names {
		number := ""
		for id, known := range r.QOS {
			if known == name {
				number = strconv.FormatUint(uint64(id), 10)
			}
		}
		if _, err := strconv.ParseUint(name, 10, 32); number == "" && err == nil {
			number = name
		}
		if number == "" {
			return nil, errs.New(errs.Invalid, "there is no quality of service %q", name).WithSource(inQuery + parameter)
		}
		list = append(list, number)
	}
	return list, nil
}

// only is the one record of a list that is is true of, which is asked for by name; errs.NotFound. The list
// is heard to its end, where a daemon says what it thinks of the question.
func only[T any](kind, name string, list func(each func(*T) error) error, is func(*T) bool) (found *T, err error) {
	err = list(func(one *T) error {
		if found == nil && is(one) {
			kept := *one
			found = &kept
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, errs.New(errs.NotFound, "there is no %s %q", kind, name)
	}
	return found, nil
}

func (h *handler) getTRES(c *call, _ *api.NoParams) error {
	body := api.TRESAnswer{Envelope: c.envelope()}
	body.TRES = func(each func(*model.TRES) error) error {
		return h.Accounting.TRES(c.ctx, c.cred, model.TRESFilter{WithDeleted: true}, each)
	}
	return send(c, http.StatusOK, api.TRESList, &body)
}

func (h *handler) getClusters(c *call, _ *api.ClustersParams) error {
	return h.sendClusters(c, model.ClusterFilter{}, "")
}

func (h *handler) getCluster(c *call, p *api.ClusterParams) error {
	if len(p.Names) > 0 && !slices.Contains(p.Names, p.Name) {
		return errs.New(errs.NotFound, "there is no cluster %q of those that cluster names", p.Name)
	}
	p.Names = []string{p.Name}
	return h.sendClusters(c, p.ClusterFilter, p.Name)
}

// sendClusters answers with clusters; with one, when it has a name.
func (h *handler) sendClusters(c *call, filter model.ClusterFilter, name string) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	list := func(each func(*model.Cluster) error) error { return h.Accounting.Clusters(c.ctx, c.cred, filter, each) }
	if name != "" {
		one, err := only("cluster", name, list, func(c *model.Cluster) bool { return c.Name == name })
		if err != nil {
			return err
		}
		list = func(each func(*model.Cluster) error) error { return each(one) }
	}
	body := api.ClustersAnswer{Envelope: c.envelope()}
	body.Clusters = func(each func(*api.ClusterRow) error) error {
		row := api.ClusterRow{Records: r}
		return list(func(one *model.Cluster) error {
			row.Cluster = one
			return each(&row)
		})
	}
	return send(c, http.StatusOK, api.Clusters, &body)
}

func (h *handler) getQOSList(c *call, p *api.QOSListParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	filter := p.QOSFilter
	if filter.IDs, err = qosNumbers(r, filter.IDs, "id"); err != nil {
		return err
	}
	return h.sendQOS(c, r, func(each func(*model.QOS) error) error { return h.Accounting.QOS(c.ctx, c.cred, filter, each) })
}

func (h *handler) getQOS(c *call, p *api.QOSParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	var filter model.QOSFilter
	if p.WithDeleted {
		filter.Flags = model.QOSWithDeleted
	}
	// A number counts where no name is it.
	byName := slices.Contains(slices.Collect(maps.Values(r.QOS)), p.Name)
	one, err := only("quality of service", p.Name, func(each func(*model.QOS) error) error { return h.Accounting.QOS(c.ctx, c.cred, filter, each) },
		func(q *model.QOS) bool {
			return q.Name == p.Name || !byName && strconv.FormatUint(uint64(q.ID), 10) == p.Name
		})
	if err != nil {
		return err
	}
	return h.sendQOS(c, r, func(each func(*model.QOS) error) error { return each(one) })
}

func (h *handler) sendQOS(c *call, r *api.Records, list func(each func(*model.QOS) error) error) error {
	body := api.QOSAnswer{Envelope: c.envelope()}
	body.QOS = func(each func(*api.QOSRow) error) error {
		row := api.QOSRow{Records: r}
		return list(func(q *model.QOS) error {
			row.QOS = q
			return each(&row)
		})
	}
	return send(c, http.StatusOK, api.QOSList, &body)
}

func (h *handler) getAccounts(c *call, p *api.AccountsParams) error {
	return h.sendAccounts(c, func(each func(*model.Account) error) error {
		return h.Accounting.Accounts(c.ctx, c.cred, p.AccountFilter, each)
	})
}

func (h *handler) getAccount(c *call, p *api.AccountParams) error {
	filter := model.AccountFilter{Assoc: model.AssocFilter{Accounts: []string{p.Name}}}
	for bit, on := range map[model.AccountFilterFlags]bool{model.AccountWithAssocs: p.WithAssocs, model.AccountWithCoordinators: p.WithCoords, model.AccountWithDeleted: p.WithDeleted} {
		if on {
			filter.Flags |= bit
		}
	}
	one, err := only("account", p.Name, func(each func(*model.Account) error) error {
		return h.Accounting.Accounts(c.ctx, c.cred, filter, each)
	}, func(a *model.Account) bool { return a.Name == p.Name })
	if err != nil {
		return err
	}
	return h.sendAccounts(c, func(each func(*model.Account) error) error { return each(one) })
}

func (h *handler) sendAccounts(c *call, list func(each func(*model.Account) error) error) error {
	return send(c, http.StatusOK, api.Accounts, &api.AccountsAnswer{Accounts: list, Envelope: c.envelope()})
}

func (h *handler) getUsers(c *call, p *api.UsersParams) error {
	list := func(each func(*model.User) error) error { return h.Accounting.Users(c.ctx, c.cred, p.UserFilter, each) }
	if p.WithoutDefaults {
		all := list
		list = func(each func(*model.User) error) error {
			return all(func(u *model.User) error {
				u.DefaultAccount, u.DefaultWCKey = "", ""
				return each(u)
			})
		}
	}
	return h.sendUsers(c, list)
}

func (h *handler) getUser(c *call, p *api.UsersParams) error {
	p.Assoc.Users = []string{p.Name}
	one, err := only("user", p.Name, func(each func(*model.User) error) error {
		return h.Accounting.Users(c.ctx, c.cred, p.UserFilter, each)
	}, func(u *model.User) bool { return u.Name == p.Name })
	if err != nil {
		return err
	}
	return h.sendUsers(c, func(each func(*model.User) error) error { return each(one) })
}

func (h *handler) sendUsers(c *call, list func(each func(*model.User) error) error) error {
	return send(c, http.StatusOK, api.UserList, &api.UsersAnswer{Users: list, Envelope: c.envelope()})
}

func (h *handler) getAssociations(c *call, p *api.AssociationParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	filter := p.AssocFilter
	if filter.DefaultQOSIDs, err = qosNumbers(r, filter.DefaultQOSIDs, "default_qos"); err != nil {
		return err
	}
	if filter.QOSIDs, err = qosNumbers(r, filter.QOSIDs, "qos"); err != nil {
		return err
	}
	switch {
	case filter.UsageStart != 0 && filter.UsageEnd == 0:
		filter.UsageEnd = model.At(c.begun)
	case filter.UsageStart > filter.UsageEnd:
		filter.UsageStart, filter.UsageEnd = filter.UsageEnd, filter.UsageStart
	}
	body := api.AssociationsAnswer{Envelope: c.envelope()}
	body.Associations = func(each func(*api.AssociationRow) error) error {
		row := api.AssociationRow{Records: r}
		return h.Accounting.Associations(c.ctx, c.cred, filter, func(a *model.Association) error {
			row.Association = a
			return each(&row)
		})
	}
	return send(c, http.StatusOK, api.Associations, &body)
}
