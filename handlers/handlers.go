// Package handlers answers requests. It finds the endpoint, authenticates the
// client with package auth, reads the body, and sends requests to the
// controller or the accounting daemon. Then it renders the answer, which always
// has the same envelope.
//
// The file routes.go lists all endpoints that package api declares, each with
// its handler. Each resource has a file (node.go, job.go, …). The file
// controller.go declares an interface for each daemon.
//
// This package never reads a body before the client is authenticated, because
// parsing a hostile body may take a long time. It never sends a truncated
// answer that looks complete. It never sends the internal cause of a failure.
// It refuses tokens in URLs. It never logs a token, in whatever part of the
// request the token was sent (stray.go).
package handlers

import (
	"context"

	"schedrestd/internal/feature"
)

// Config configures the handlers.
type Config struct {
	ServerConfig

	Controller Controller
	Accounting Accounting      // if nil, accounting is not in use, and the accounting paths do not exist
	Resolver   Resolver        // looks up the ids of users and groups; nil if no name can be resolved
	Content    feature.Content // served paths; 0 for all
	Statuses   []string        // responses in the OpenAPI document; nil for feature.DefaultStatuses
	Docs       bool            // the page at /docs is served

	// Ready returns the reasons why new requests should go to another gateway.
	// A gateway without this function is always ready.
	Ready func(context.Context) (reasons []string)

	// HalfClosed reports whether the client of a request has shut down its
	// sending side. It is nil if the gateway can't know this.
	HalfClosed func(ctx context.Context) bool
}

type handler struct {
	Config
	document *Cached // the OpenAPI document
}

func newHandler(cfg Config) *handler {
	cfg.SetDefaults()
	if cfg.Content == 0 {
		cfg.Content = feature.AllContent
	}
	h := &handler{Config: cfg}
	h.document = h.newDocument()
	return h
}
