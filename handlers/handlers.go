// Package handlers answers the requests of the REST API. Package rest serves
// them: it authenticates the client, parses the request and renders the answer.
// The functions in this package do the work in between. They send requests to
// the controller or the accounting daemon.
//
// The file routes.go lists all endpoints that package api declares, each with
// its function. Each resource has a file (node.go, job.go, …). The file
// controller.go declares an interface for each daemon. Changes of accounting
// records are made in one transaction for each request (edit.go,
// transaction.go).
package handlers

import (
	"cmp"
	"context"

	"schedrestd/auth"
	"schedrestd/handlers/rest"
	"schedrestd/internal/feature"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/internal/setting"
)

// Config configures the handlers, and by its embedded Config the server.
type Config struct {
	rest.Config
	setting.Pages

	Controller Controller
	Accounting Accounting      // if nil, accounting is not in use, and the accounting paths do not exist
	Levels     Accounting      // is asked for users' levels (level.go), even if Accounting is nil; nil if accounting is not in use
	Resolver   Resolver        // looks up the ids of users and groups; nil if no name can be resolved
	Content    feature.Content // served paths; 0 for all

	Output OutputFiles   // reads the output of jobs; nil if no output is read
	Tokens GatewayTokens // manages gateway tokens; nil if none are accepted

	// TokenDigests returns a line about what gateway tokens are accepted by. It is
	// nil if there are none.
	TokenDigests func(context.Context) string

	// Ready returns the results of the checks behind /readyz. If one has a
	// problem, new requests should go to another gateway. A gateway without this
	// function is always ready.
	Ready func(context.Context) []Check

	// Administers reports whether a verified credential is that of root or
	// SchedUser. If it is nil, no credential is.
	Administers func(auth.Credential) bool

	// HalfClosed reports whether the client of a request has shut down its
	// sending side. It is nil if the gateway can't know this.
	HalfClosed func(ctx context.Context) bool
}

// Check is the result of a check of the gateway.
type Check struct {
	Name    string // such as "controller"
	Problem string // "" if there is none
}

func (c Check) String() string { return c.Name + ": " + cmp.Or(c.Problem, "ok") }

type handler struct {
	Config
	versions *rest.Cached // the names of the versions
	feeds    *feeds
	scripts  *semaphore.Semaphore[string] // a place is a script
}

func newHandler(cfg Config) *handler {
	cfg.SetDefaults()
	if cfg.Content == 0 {
		cfg.Content = feature.AllContent
	}
	h := &handler{Config: cfg, scripts: semaphore.New[string](limit.Scripts)}
	h.versions = h.newVersions()
	h.feeds = h.newFeeds()
	return h
}
