package rest

import (
	"context"
	"runtime"
	"sync"

	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

// Service is what a Server serves.
type Service struct {
	Routes []Route
	Pages  map[string]Page // keyed by path, without the leading slash

	Controller Controller // of the routes that are not about accounting
	Accounting Verifier   // of the others; nil if there are none

	// CheckMember returns an error if a gateway token that acts for the members of
	// a group must not act for this one, whose credential it gets. Nil if all
	// members are permitted.
	CheckMember func(ctx context.Context, cred model.Credential, user string) error
}

// A Verifier is a daemon that verifies credentials.
type Verifier interface {
	// Verify returns errs.Unauthenticated if the credential is invalid.
	Verify(context.Context, model.Credential) error
}

// A Controller is the Verifier of the routes that are not about accounting.
type Controller interface {
	Verifier

	// Release returns the controller's release, such as "24.11.5", or "" if the
	// release is unknown. The method never fails, but may have to send a
	// request to the controller.
	Release(context.Context, model.Credential) string
}

// A Server is an http.Handler that serves a Service.
type Server struct {
	Config
	service    Service
	router     *router
	formats    *formats
	parsing    *semaphore.Semaphore[string] // has a place for each large body that is being parsed; keys are users
	renderings *renderings
	shapes     sync.Map // *schema.Shape of request bodies, by routeView

	stopped     context.Context // ends when no request may wait any longer; its cause says why
	stopWaiting context.CancelCauseFunc
}

// NewServer returns a Server, which replaces the nil values in cfg by their
// defaults.
func NewServer(service Service, cfg Config) *Server {
	cfg.SetDefaults()
	stopped, stop := context.WithCancelCause(context.Background())
	return &Server{
		stopped:     stopped,
		stopWaiting: stop,

		Config:     cfg,
		service:    service,
		router:     newRouter(service.Routes, service.Pages, cfg.Names, cfg.Parsers),
		formats:    newFormats(cfg.JSON, cfg.YAML),
		renderings: newRenderings(cfg.Renderings),
		parsing:    semaphore.New[string](limit.Parsing.Of(2 * runtime.GOMAXPROCS(0))),
	}
}
