package rest

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/handlers/feed"
	"schedrestd/internal/feature"
)

// Config configures a Server. MaxBody and ReadBody must be set if any route reads
// a body.
type Config struct {
	Auth          auth.Options
	Authenticator *auth.Authenticator            // verifies credentials; nil if only the daemons verify them
	Names         api.Names                      // served spellings
	Parsers       []feature.Parser               // served API versions and their options; nil for all
	Deprecated    map[schema.Version]Deprecation // by version; nil for none
	Origins       []string                       // origins whose web pages may read the answers; nil for none
	Scopes        map[string]api.Scopes          // what the clients of a listener may do, by its address; a listener without an entry permits everything
	JSON, YAML    schema.Layout                  // layout of bodies
	Cluster       string                         // name of the cluster
	Release       string                         // release of this program, "1.2.3"
	Users         api.Users                      // nil if users are shown by number
	ErrorText     func(int) string               // returns Slurm's text for an error number; if nil, the number is the text
	SendLength    bool                           // every answer announces its length; if false, only answers to HTTP/1.0 requests do
	Memory        Memory                         // limits the memory for large bodies and stored answers; nil for no limit
	Renderings    int                            // memory for records that several requests share, in bytes; 0 for none
	MaxAge        time.Duration                  // age of lists that is accepted if a request does not say; 0 for none
	MaxWait       time.Duration                  // maximum time for which a request waits for a change; 0 if none waits
	WatchInterval time.Duration                  // minimum time between two requests to the controller for all that wait; 0 for a second
	CallTime      time.Duration                  // maximum time for which a daemon is asked; 0 for no limit
	MaxBody       int64                          // maximum length of a request's body; 0 if no body is allowed
	MaxParsed     int64                          // maximum memory for a body with the values that are parsed from it; 0 for no limit
	ReadBody      time.Duration                  // maximum time to wait for the next bytes of a body
	Strict        bool                           // bodies with unknown fields are refused, even with +fast
	Audit         Audit                          // records changes; nil if changes are not recorded
	Keys          Keys                           // stores Idempotency-Keys; nil if they are refused
	Log           *slog.Logger                   // nil for no log
	Lines         *Lines                         // limits the log lines about requests; nil for no limit

	// Observe, if not nil, is called after each request has been answered.
	Observe func(Observation)

	// CountWatch, if not nil, counts requests that wait for changes or follow
	// them, and what is done for them.
	CountWatch feed.Counter

	// Park is called before a request waits for a change. It may refuse that with
	// an error. It may call the function stop later, to end the wait. If Park is
	// nil, all requests may wait.
	Park func(ctx context.Context, who string, stop func()) (parked Parked, err error)

	// Admit returns an error if a request from an authenticated user must be
	// refused. If Admit is nil, all requests are admitted.
	Admit func(ctx context.Context, who string) error
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

// SetDefaults replaces nil values by their defaults.
func (cfg *Config) SetDefaults() {
	if cfg.Parsers == nil {
		cfg.Parsers = feature.AllParsers()
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
	if cfg.Memory == nil {
		cfg.Memory = noLimit
	}
	if cfg.WatchInterval == 0 {
		cfg.WatchInterval = time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
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
