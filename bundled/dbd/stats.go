package dbd

import (
	"context"
	"slices"

	"schedrestd/conf"
	"schedrestd/model"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleStats answers AccountingGetStats (DBD_GET_STATS) with counts of the
// requests that the daemon has received since it started. All users see how
// often each message was received. PrivateData=users determines who sees how
// many requests each user has sent.
//
// This daemon rolls up no usage. So the counts for the three periods (hour,
// day, month) are zero, and there are no counts for clusters.
func (d *Daemon) handleStats(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	if err := r.Decode(message.Empty{}); err != nil {
		return 0, nil, err
	}
	messages, users := d.calls.snapshot()
	users = slices.DeleteFunc(users, func(n model.CallCount) bool {
		return !d.privacy.CanSee(r.Identity.UID, n.ID, conf.PrivateUsers)
	})
	return message.AccountingGotStats, &message.AccountingStats{AccountingStats: model.AccountingStats{
		Rollup:    model.Rollup{Periods: make([]model.RollupPeriod, 3)},
		Rollups:   []model.Rollup{},
		RPCs:      messages,
		TimeStart: model.At(d.calls.since),
		Users:     users,
	}}, nil
}
