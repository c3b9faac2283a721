package dbd

import (
	"context"

	"schedrestd/errs"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// maxRecord is the longest batch of jobs in bytes, which is some times what schedctld sends.
const maxRecord = 32 << 20

// Limit is how many bytes of a request are taken.
func (d *Daemon) Limit(t message.Type, who server.Identity) int {
	if t == message.AccountingRecordJobs && d.privacy.Super(who.UID) {
		return maxRecord
	}
	return server.MaxSmall
}

// record answers AccountingRecordJobs: the answer means that the jobs are on disk, after which
// schedctld forgets them. The same batch again changes nothing. Only a super user
// may, or anybody could rewrite anybody's accounting.
func (d *Daemon) record(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	if !d.privacy.Super(r.Identity.UID) {
		return 0, nil, errs.New(errs.Denied, "only root and the scheduler's user record jobs")
	}
	var batch message.RecordJobs
	if err := r.Decode(&batch); err != nil {
		return 0, nil, err
	}
	if err := d.store.Record(ctx, r.Cluster, batch.Jobs); err != nil {
		return 0, nil, err
	}
	return done(r)
}
