// Package handlers answers requests: it finds the endpoint, has auth judge who asks,
// reads the body, asks the controller or the accounting daemon, and renders the
// answer, which is the envelope whatever happens.
//
// routes.go is the table of contents: every endpoint that api declares, beside what it does here. One
// file for each resource has the behaviour (node.go, job.go, …). The daemons
// are known only as the interfaces in controller.go.
//
// What this package refuses to do: read a body before its sender is known to be who he says
// (garbage was enough to make others parse for minutes), answer in pieces that could look
// whole when they are not, tell a client the inner cause of a failure, take a token from a URL, or
// write one to a log, wherever in the request it stood (stray.go).
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
	"schedrestd/plugin"
)

// Config is what the handlers need.
type Config struct {
	Controller Controller
	Accounting Accounting // nil: accounting is not in use, and its paths do not exist
	Auth       auth.Options
	Judge      *auth.Judge                 // says whether credentials are genuine; nil: the daemons alone do
	Names      api.Names                   // spellings served
	Parsers    []plugin.Parser             // API versions served, and how; nil: all
	Content    plugin.Content              // which paths are served; 0: all there are
	Statuses   []string                    // responses that the OpenAPI document lists; nil: as plugin.DefaultStatuses
	JSON, YAML schema.Layout               // how bodies are laid out
	Ready      func(context.Context) error // why new requests should not come here; nil: they always should
	Cluster    string                      // name of the cluster
	Release    string                      // of this program, "1.2.3"
	Users      api.Users                   // nil: users are shown by number
	Resolver   Resolver                    // numbers of names; nil: no name has one
	ErrorText  func(int) string            // Slurm's text for an error number of its own; nil: the number
	Sized      bool                        // every answer says how long it is; else those of HTTP/1.0 alone
	Memory     Memory                      // for large bodies, and answers that are kept until their length is known; nil: there is no bound
	MaxBody    int64                       // most bytes of a request's body; 0 lets none in
	ReadBody   time.Duration               // a request's body that makes no progress for so long is given up
	Strict     bool                        // a body with an unknown field is refused, with +fast too
	Audit      Audit                       // has a line for each change; nil: changes are not recorded
	Log        *slog.Logger                // nil: none

	// Admit lets in a request of who, whose credential is good, or says why not; nil: all.
	Admit func(ctx context.Context, who string) error
}

// New makes the handler of all requests.
func New(cfg Config) http.Handler { return newHandler(cfg) }

func newHandler(cfg Config) *handler {
	if cfg.Parsers == nil {
		cfg.Parsers = plugin.AllParsers()
	}
	if cfg.Content == 0 {
		cfg.Content = plugin.Controller | plugin.Accounting
	}
	if cfg.Users == nil {
		cfg.Users = api.Numbers{}
	}
	if cfg.ErrorText == nil {
		cfg.ErrorText = strconv.Itoa
	}
	if cfg.Judge == nil {
		cfg.Judge = new(auth.Judge)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	h := &handler{Config: cfg, formats: newFormats(cfg.JSON, cfg.YAML), parsing: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
	h.document.collect = sync.OnceValues(func() (*openapi.Document, error) { return openapi.New(h.described()) })
	h.router = newRouter(h.routes(), h.pages(), cfg)
	return h
}

type handler struct {
	Config
	router   *router
	formats  *formats
	parsing  chan struct{} // a place for each large body that is being parsed
	document document
}
