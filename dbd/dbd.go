// Package dbd is the shipped accounting daemon: it keeps the jobs of a cluster of
// one machine in SQLite and counts what it is asked. It speaks slurmdbd's protocol,
// connections that stay, so that the gateway has one client for it and for a
// site's slurmdbd; jobs come in by a message of our own (message.RecordJobs).
//
// It is no accounting for clusters: no associations, no limits, no sums over time. Lists of what it
// has none of are empty; a question that needs it is refused, not answered as if it had not been asked.
//
// A request is one file (stats.go, record.go, jobs.go, end.go; lists.go has the short ones). The database is store.go and migrate.go; jobs
// are found in it by find.go, through the conditions of condition.go. serve.go
// joins it with what both daemons have in common (package daemon).
package dbd

import (
	"context"
	"time"

	"schedrestd/daemon"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
	"schedrestd/semaphore"
)

// Daemon answers requests. Make it with New.
type Daemon struct {
	store   *Store
	privacy daemon.Privacy
	calls   *calls

	queries *semaphore.Semaphore[uint32]
}

// New makes a Daemon that keeps its jobs in store. Its users see what privacy says, and privacy.Super
// records jobs: root and the scheduler's user.
func New(store *Store, privacy daemon.Privacy) *Daemon {
	return &Daemon{store: store, privacy: privacy, calls: newCalls(time.Now()), queries: daemon.NewQueries()}
}

// Handlers is what the daemon answers, for server.Server's Persistent.
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
		handlers[t] = d.counted(h)
	}
	return handlers
}

// counted is h, with each call counted for its message and its user.
func (d *Daemon) counted(h server.Handler) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		start := time.Now()
		defer func() { d.calls.add(r.Type, r.Identity.UID, time.Since(start)) }()
		return h(ctx, r)
	}
}

// done is the short answer to r: all went well.
func done(r *server.Request) (message.Type, message.Body, error) {
	return message.AccountingRC, &message.PersistRC{Info: uint16(r.Type)}, nil
}
