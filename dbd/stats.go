package dbd

import (
	"context"
	"slices"

	"schedrestd/conf"
	"schedrestd/model"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// stats answers AccountingGetStats (DBD_GET_STATS): what was asked since the daemon started, with
// this call not yet in it. All users see how often each message came. How often each user asked is
// information about users (PrivateData=users).
//
// Nothing is summed up here, so the three kinds of summing up (hour, day, month)
// count zero, and there are none of a cluster.
func (d *Daemon) stats(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	if err := r.Decode(message.Empty{}); err != nil {
		return 0, nil, err
	}
	messages, users := d.calls.lists()
	users = slices.DeleteFunc(users, func(n model.CallCount) bool {
		return !d.privacy.Sees(r.Identity.UID, n.ID, conf.PrivateUsers)
	})
	return message.AccountingGotStats, &message.AccountingStats{AccountingStats: model.AccountingStats{
		Rollup:    model.Rollup{Periods: make([]model.RollupPeriod, 3)},
		Rollups:   []model.Rollup{},
		RPCs:      messages,
		TimeStart: model.At(d.calls.since),
		Users:     users,
	}}, nil
}
