package rest

import (
	"context"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/handlers/feed"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

// A Worker is the process in which a Server runs. It limits what requests may
// use, records what they change, and counts what they do.
type Worker interface {
	// Admit returns an error if a request from an authenticated user must be
	// refused.
	Admit(ctx context.Context, user string) error

	// Memory limits the memory that stored answers and large bodies of a
	// credential occupy. It returns a reservation of no bytes.
	Memory(model.Credential) feed.Reservation

	// WatchToken calls ended when a gateway token is no longer accepted
	// (auth.Revoked), when it does not act for the user actAs that the request names
	// (auth.NotForUser), or when tokens can't be verified (auth.Unknown), until the
	// function that it returns is called.
	WatchToken(token, actAs string, ended func(auth.Answer)) (end func())

	// Park is called before a request waits for a change. It may refuse that with
	// an error. It may call the function stop later, to end the wait.
	Park(ctx context.Context, user string, stop func()) (Parked, error)

	Audit

	// Observe is called after each request has been answered.
	Observe(Observation)

	// CountWatch counts requests that wait for changes or follow them, and what is
	// done for them. It is a feed.Counter.
	CountWatch(what feed.Count, n int)
}

// Parked is a request that waits for a change. While it waits, it holds nothing
// that other requests need.
type Parked interface {
	// Resume is called before the request goes on. It returns an error if the
	// request can't go on.
	Resume(ctx context.Context) error

	// Leave ends the wait. It may be called instead of Resume, or after it.
	Leave()
}

// Observation describes a request and its answer for the metrics.
type Observation struct {
	Endpoint *api.Endpoint // nil for none
	Page     string        // id of a page outside the API; "" for none
	Version  schema.Version
	Method   string
	Status   int
	Duration time.Duration // without the time for which the request waited for changes, or followed them
}

// NoWorker is a Worker that limits, records and counts nothing, and refuses
// Idempotency-Keys. It is for a Server outside a worker process, and for tests,
// which embed it.
type NoWorker struct{}

// Admit admits all requests.
func (NoWorker) Admit(context.Context, string) error { return nil }

// Memory returns a reservation without a limit.
func (NoWorker) Memory(model.Credential) feed.Reservation {
	return semaphore.Unlimited[string]()
}

// WatchToken does nothing.
func (NoWorker) WatchToken(_, _ string, _ func(auth.Answer)) (end func()) { return func() {} }

// Park lets all requests wait.
func (NoWorker) Park(context.Context, string, func()) (Parked, error) { return unparked{}, nil }

// Intend permits all changes.
func (NoWorker) Intend(context.Context, Change) (func(Result), error) { return func(Result) {}, nil }

// KeepsKeys returns false.
func (NoWorker) KeepsKeys() bool { return false }

// Observe does nothing.
func (NoWorker) Observe(Observation) {}

// CountWatch does nothing.
func (NoWorker) CountWatch(feed.Count, int) {}

// unparked is a request that has given up nothing for its wait.
type unparked struct{}

func (unparked) Resume(context.Context) error { return nil }
func (unparked) Leave()                       {}
