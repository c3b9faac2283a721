// Package dbd is the bundled accounting daemon. It stores the jobs of a cluster
// of one machine in SQLite and counts the requests that it receives. It speaks
// slurmdbd's protocol over persistent connections, so that the gateway uses one
// client for both. Jobs arrive in a message of our own (message.RecordJobs).
//
// It has no associations, limits or usage roll-up. Lists of these are empty.
// Requests that need them are refused rather than answered incorrectly.
//
// Each request has a file (stats.go, record.go, jobs.go, end.go); lists.go has
// the short ones. The database is in store.go and migrate.go. find.go finds
// jobs by the conditions of condition.go. serve.go joins all of this with the
// code shared with schedctld (package daemon).
package dbd

import (
	"context"
	"time"

	"schedrestd/daemon"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
	"schedrestd/semaphore"
)

// Daemon answers requests. Create it with New.
type Daemon struct {
	store   *Store
	privacy daemon.Privacy
	calls   *calls

	queries *semaphore.Semaphore[uint32]
}

// New returns a Daemon that stores its jobs in store. privacy determines what
// users see; users for whom privacy.Super holds (root and the scheduler's user)
// may record jobs.
func New(store *Store, privacy daemon.Privacy) *Daemon {
	return &Daemon{store: store, privacy: privacy, calls: newCalls(time.Now()), queries: daemon.NewQueries()}
}

// Handlers returns the handlers of all requests, for server.Server's
// Persistent.
func (d *Daemon) Handlers() map[message.Type]server.Handler {
	handlers := map[message.Type]server.Handler{
		message.AccountingGetStats:   d.stats,
		message.AccountingRecordJobs: d.record,
		message.AccountingFini:       d.end,

		message.AccountingGetJobs:     d.jobs,
		message.AccountingGetTRES:     d.tres,
		message.AccountingGetClusters: d.clusters,
		message.AccountingGetAssocs:   d.associations,
		message.AccountingGetAccounts: d.accounts,
		message.AccountingGetUsers:    d.users,
		message.AccountingGetQOS:      d.qos,
		message.AccountingGetWCKeys:   d.wckeys,
	}
	for t := range unoffered {
		handlers[t] = refuseUnoffered
	}
	for t, h := range handlers {
		if t != message.AccountingFini { // which clients send after each question
			handlers[t] = d.counted(h)
		}
	}
	return handlers
}

// counted returns h with each call counted for its message and its user.
func (d *Daemon) counted(h server.Handler) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		start := time.Now()
		defer func() { d.calls.add(r.Type, r.Identity.UID, time.Since(start)) }()
		return h(ctx, r)
	}
}

// done returns the answer to r that has no other result.
func done(r *server.Request) (message.Type, message.Body, error) {
	return message.AccountingRC, &message.PersistRC{Info: uint16(r.Type)}, nil
}
