package dbd

import (
	"context"

	"schedrestd/errs"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// maxRecord is the longest batch of jobs in bytes, several times what schedctld
// sends.
const maxRecord = 32 << 20

// Limit returns the maximum length of a request in bytes.
func (d *Daemon) Limit(t message.Type, who server.Identity) int {
	if t == message.AccountingRecordJobs && d.privacy.Super(who.UID) {
		return maxRecord
	}
	return server.MaxSmall
}

// record answers AccountingRecordJobs. The answer means that the jobs are on
// disk; schedctld then drops them. Recording the same batch again changes
// nothing. Only root and the scheduler's user may record jobs: otherwise any
// user could falsify the accounting of others.
func (d *Daemon) record(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	if !d.privacy.Super(r.Identity.UID) {
		return 0, nil, errs.New(errs.Denied, "only root and the scheduler's user may record jobs")
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
