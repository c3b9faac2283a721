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
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"schedrestd/api"
	"schedrestd/api/openapi"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/internal/feature"
)

// Config configures the handlers.
type Config struct {
	Controller    Controller
	Accounting    Accounting // if nil, accounting is not in use, and the accounting paths do not exist
	Auth          auth.Options
	Authenticator *auth.Authenticator // verifies credentials; nil if only the daemons verify them
	Names         api.Names           // served spellings
	Parsers       []feature.Parser    // served API versions and their options; nil for all
	Content       feature.Content     // served paths; 0 for all
	Statuses      []string            // responses in the OpenAPI document; nil for feature.DefaultStatuses
	JSON, YAML    schema.Layout       // layout of bodies
	Docs          bool                // the page at /docs is served
	Cluster       string              // name of the cluster
	Release       string              // release of this program, "1.2.3"
	Users         api.Users           // nil if users are shown by number
	Resolver      Resolver            // looks up the ids of users and groups; nil if no name can be resolved
	ErrorText     func(int) string    // returns Slurm's text for an error number; if nil, the number is the text
	SendLength    bool                // every answer announces its length; if false, only answers to HTTP/1.0 requests do
	Memory        Memory              // limits the memory for large bodies and stored answers; nil for no limit
	MaxBody       int64               // maximum length of a request's body; 0 if no body is allowed
	MaxParsed     int64               // maximum memory for a body with the values that are parsed from it; 0 for no limit
	ReadBody      time.Duration       // maximum time to wait for the next bytes of a body
	Strict        bool                // bodies with unknown fields are refused, even with +fast
	Audit         Audit               // records changes; nil if changes are not recorded
	Keys          Keys                // stores Idempotency-Keys; nil if they are refused
	Log           *slog.Logger        // nil for no log
	Lines         *Lines              // limits the log lines about requests; nil for no limit

	// Observe, if not nil, is called after each request has been answered.
	Observe func(Observation)

	// Ready returns the reasons why new requests should go to another gateway.
	// A gateway without this function is always ready.
	Ready func(context.Context) (reasons []string)

	// Admit returns an error if a request from an authenticated user must be
	// refused. If Admit is nil, all requests are admitted.
	Admit func(ctx context.Context, who string) error

	// HalfClosed reports whether the client of a request has shut down its
	// sending side. It is nil if the gateway can't know this.
	HalfClosed func(ctx context.Context) bool
}

// New returns the handler of all requests.
func New(cfg Config) http.Handler { return newHandler(cfg) }

func newHandler(cfg Config) *handler {
	if cfg.Parsers == nil {
		cfg.Parsers = feature.AllParsers()
	}
	if cfg.Content == 0 {
		cfg.Content = feature.AllContent
	}
	if cfg.Users == nil {
		cfg.Users = api.Numbers{}
	}
	if cfg.ErrorText == nil {
		cfg.ErrorText = strconv.Itoa
	}
	if cfg.Authenticator == nil {
		cfg.Authenticator = new(auth.Authenticator)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	h := &handler{Config: cfg, formats: newFormats(cfg.JSON, cfg.YAML), parseSlots: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
	h.document.collect = sync.OnceValues(func() (*openapi.Document, error) { return openapi.New(h.documentOptions()) })
	h.router = newRouter(h.routes(), h.pages(), cfg)
	return h
}

type handler struct {
	Config
	router     *router
	formats    *formats
	parseSlots chan struct{} // contains an element for each large body that is being parsed
	document   document
	shapes     sync.Map // *schema.Shape of request bodies, by routeView
}
