package dbd

import (
	"cmp"
	"context"
	"slices"

	"schedrestd/internal/errs"
	"schedrestd/model"
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
	case recordsJobs(t):
		return maxRecord
	}
	return maxChange
}

// recordsJobs reports whether a message of type t contains jobs from a schedctld.
func recordsJobs(t message.Type) bool {
	return t == message.AccountingRecordRuns || t == message.AccountingRecordJobs
}

// handleRecordRuns handles AccountingRecordRuns. See record.
func (d *Daemon) handleRecordRuns(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var batch message.RecordRuns
	return d.record(ctx, r, &batch, &batch.Jobs)
}

// handleRecordJobs handles AccountingRecordJobs, which a schedctld of an older
// release sends. See record.
func (d *Daemon) handleRecordJobs(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var batch message.RecordJobs
	return d.record(ctx, r, &batch, &batch.Jobs)
}

// record decodes a batch and stores its jobs. The answer confirms that the
// jobs are on disk. When schedctld receives the answer, it deletes its own
// records of these jobs. If schedctld sends the same batch again, nothing
// changes. Only root and the scheduler's user may record jobs, because other
// users could falsify the accounting.
func (d *Daemon) record(ctx context.Context, r *server.Request, batch message.Body, jobs *[]model.Job) (message.Type, message.Body, error) {
	if !d.privacy.Super(r.Identity.UID) {
		return 0, nil, errs.New(errs.Denied, "only root and the scheduler's user may record jobs")
	}
	if err := r.Decode(batch); err != nil {
		return 0, nil, err
	}
	if err := d.store.Record(ctx, r.Cluster, *jobs); err != nil {
		return 0, nil, err
	}
	names := []string{}
	for _, j := range *jobs {
		if name := cmp.Or(j.Cluster, r.Cluster); !slices.Contains(names, name) {
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
