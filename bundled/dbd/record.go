package dbd

import (
	"cmp"
	"context"
	"slices"

	"schedrestd/internal/errs"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// maxRecord is the maximum length in bytes of a batch of jobs. It is several
// times the length of the longest batch that schedctld can send.
const maxRecord = 32 << 20

// maxChange is the maximum length in bytes of a request that adds or changes
// records.
const maxChange = 4 << 20

// Limit returns the maximum length of a request in bytes.
func (d *Daemon) Limit(t message.Type, client server.Identity) int {
	switch {
	case !d.privacy.Super(client.UID):
		return server.MaxSmall
	case t == message.AccountingRecordJobs:
		return maxRecord
	}
	return maxChange
}

// handleRecordJobs handles AccountingRecordJobs. The answer confirms that the
// jobs are on disk. When schedctld receives the answer, it deletes its own
// records of these jobs. If schedctld sends the same batch again, nothing
// changes. Only root and the scheduler's user may record jobs, because other
// users could falsify the accounting.
func (d *Daemon) handleRecordJobs(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
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
	names := []string{}
	for i := range batch.Jobs {
		if name := cmp.Or(batch.Jobs[i].Cluster, r.Cluster); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	// The jobs are already on disk, so an error from here on must not make the
	// request fail.
	if err := d.registerClusters(ctx, names); err != nil {
		d.log.Error("adding clusters of jobs failed", "error", err)
	}
	return success(r)
}
