// Package dbd implements the bundled accounting daemon. The daemon stores the
// jobs of a one-machine cluster in an SQLite database. The database also
// contains clusters, accounts, users, associations and QOS. The daemon counts
// the requests that it receives.
//
// The daemon speaks slurmdbd's protocol over persistent connections, so the
// gateway uses the same client for this daemon and for slurmdbd. Two messages
// are not in slurmdbd's protocol: message.RecordRuns, in which jobs arrive, and
// message.GetAccountingJobPage, which a client sends if the daemon has offered it
// at the beginning of the connection.
//
// The daemon enforces no limits and has no workload keys. It refuses requests that
// need these features, because its answers would be wrong. It computes usage when a
// list is requested with it, from the records of jobs (usage.go).
//
// All records except jobs are in memory, in a catalog.Catalog. edit.go
// implements transactions. Each transaction changes a copy of the Catalog.
// changes.go handles the requests that change records, and lists.go handles the
// requests that list them. records.go stores the records in the database.
//
// stats.go, record.go and jobs.go handle the remaining requests. The code for
// the database is in store.go and migrate.go. find.go finds jobs that meet the
// conditions in condition.go. serve.go connects all of this with the code that
// the daemon shares with schedctld (package daemon).
package dbd

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"schedrestd/bundled/daemon"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Daemon answers requests. Create it with New.
type Daemon struct {
	store    *Store
	log      *slog.Logger
	privacy  daemon.Privacy
	calls    *calls
	editSlot editSlot
	maxWait  time.Duration                // see defaultMaxWait
	turns    *semaphore.Semaphore[uint32] // has one place, for the request that begins the next transaction; keys are users

	queries *semaphore.Semaphore[uint32]
}

// New returns a Daemon that stores its records in store. The privacy argument
// determines what users see. If privacy.Super returns true for a user, that
// user may record jobs and change all records. These users are root, the
// scheduler's user and the daemon's own user.
func New(store *Store, privacy daemon.Privacy, log *slog.Logger) *Daemon {
	return &Daemon{store: store, log: log, privacy: privacy, calls: newCalls(time.Now()),
		editSlot: editSlot{maxIdle: defaultMaxIdle}, maxWait: defaultMaxWait, turns: semaphore.New[uint32](limit.Transactions), queries: daemon.NewQueries()}
}

// Handlers returns the handlers for all requests. The caller assigns the result
// to the field Persistent of a server.Server.
func (d *Daemon) Handlers() map[message.Type]server.Handler {
	list := func(h server.Handler) server.Handler { return daemon.ListHandler(d.queries, h) }
	handlers := map[message.Type]server.Handler{
		message.AccountingGetStats:   d.handleStats,
		message.AccountingRecordJobs: d.handleRecordJobs,
		message.AccountingRecordRuns: d.handleRecordRuns,
		message.AccountingFini:       d.handleFini,

		message.AccountingGetJobs:     d.handleJobs,
		message.AccountingGetJobPage:  d.handleJobPage,
		message.AccountingGetTRES:     d.handleTRES,
		message.AccountingGetClusters: list(d.handleClusters),
		message.AccountingGetAssocs:   list(d.handleAssociations),
		message.AccountingGetAccounts: list(d.handleAccounts),
		message.AccountingGetUsers:    list(d.handleUsers),
		message.AccountingGetQOS:      list(d.handleQOS),
		message.AccountingGetWCKeys:   d.handleWCKeys,
	}
	maps.Copy(handlers, d.changeHandlers())
	for t := range unsupported {
		handlers[t] = handleUnsupported
	}
	for t, h := range handlers {
		if t != message.AccountingGetStats && !recordsJobs(t) && t != message.AccountingFini {
			h = withoutTicket(h)
		}
		if t != message.AccountingFini { // clients send AccountingFini after each query, so it is not counted
			handlers[t] = d.countCalls(h)
		}
	}
	return handlers
}

// withoutTicket returns a handler that calls h, but refuses clients that
// authenticate with the controller's ticket. An attacker who steals a ticket
// must not be able to read or change accounts.
func withoutTicket(h server.Handler) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		if r.Identity.Ticket {
			return 0, nil, errs.New(errs.Denied, "the controller's ticket permits only recording jobs")
		}
		return h(ctx, r)
	}
}

// countCalls returns a handler that calls h and counts the call, by message
// type and by user.
func (d *Daemon) countCalls(h server.Handler) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		start := time.Now()
		defer func() { d.calls.add(r.Type, r.Identity.UID, time.Since(start)) }()
		return h(ctx, r)
	}
}

// success returns the answer to a request that succeeded and has no other
// result.
func success(r *server.Request) (message.Type, message.Body, error) {
	return message.AccountingRC, &message.PersistRC{Info: uint16(r.Type)}, nil
}
