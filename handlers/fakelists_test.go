package handlers

import (
	"cmp"
	"context"

	"schedrestd/model"
)

// The methods below return the fake's objects other than nodes, jobs and
// partitions.

func (f *fake) Reservations(_ context.Context, cred model.Credential, q model.Query, each func(*model.Reservation) error) (model.Time, error) {
	f.queries = append(f.queries, q)
	if err := f.logCall("reservations", cred); err != nil {
		return 0, err
	}
	return f.lastUpdate, eachOf(f.reservations, each, f.midwayErr)
}

func (f *fake) Reservation(_ context.Context, cred model.Credential, name string, q model.Query) (*model.Reservation, model.Time, error) {
	f.queries = append(f.queries, q)
	if err := f.logCall("reservation "+name, cred); err != nil {
		return nil, 0, err
	}
	return findByName(f.reservations, func(r *model.Reservation) string { return r.Name }, name, f.lastUpdate, 2053)
}

func (f *fake) Licenses(_ context.Context, cred model.Credential, q model.Query, each func(*model.License) error) (model.Time, error) {
	f.queries = append(f.queries, q)
	if err := f.logCall("licenses", cred); err != nil {
		return 0, err
	}
	return f.lastUpdate, eachOf(f.licenses, each, f.midwayErr)
}

func (f *fake) Priorities(_ context.Context, cred model.Credential, each func(*model.JobPriority) error) error {
	if err := f.logCall("priorities", cred); err != nil {
		return err
	}
	return eachOf(f.priorities, each, f.midwayErr)
}

func (f *fake) Shares(_ context.Context, cred model.Credential, accounts, users []string, each func([]string, *model.Share) error) (model.SharesTotals, error) {
	f.shareQueries = append(f.shareQueries, [2][]string{accounts, users})
	if err := f.logCall("shares", cred); err != nil {
		return model.SharesTotals{}, err
	}
	totals := model.SharesTotals{TRESNames: f.tresNames, Shares: f.totalShares}
	return totals, eachOf(f.shares, func(s *model.Share) error { return each(f.tresNames, s) }, f.midwayErr)
}

func (f *fake) Limits(_ context.Context, cred model.Credential, q model.LimitsQuery,
	assoc func(tres []string, a *model.AssocLimits) error, qos func(tres []string, l *model.QOSLimits) error) error {
	f.limitQueries = append(f.limitQueries, q)
	if err := f.logCall("limits", cred); err != nil {
		return err
	}
	err := eachOf(f.assocLimits, func(a *model.AssocLimits) error { return assoc(f.tresNames, a) }, nil)
	return cmp.Or(err, eachOf(f.qosLimits, func(l *model.QOSLimits) error { return qos(f.tresNames, l) }, f.midwayErr))
}
