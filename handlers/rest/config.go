package rest

import (
	"io"
	"log/slog"
	"strconv"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/internal/feature"
	"schedrestd/internal/setting"
)

// Config configures a Server. MaxBody and ReadBody must be set if any route reads
// a body.
type Config struct {
	setting.REST

	Auth          auth.Options
	Authenticator *auth.Authenticator            // verifies credentials; nil if only the daemons verify them
	Names         api.Names                      // served spellings
	Parsers       []feature.Parser               // served API versions and their options; nil for all
	Deprecated    map[schema.Version]Deprecation // by version; nil for none
	JSON, YAML    schema.Layout                  // layout of bodies
	Cluster       string                         // name of the cluster
	Release       string                         // release of this program, "1.2.3"
	Users         api.Users                      // nil if users are shown by number
	ErrorText     func(int) string               // returns Slurm's text for an error number; if nil, the number is the text
	SendLength    bool                           // every answer announces its length; if false, only answers to HTTP/1.0 requests do
	Worker        Worker                         // the worker process; nil for NoWorker
	Renderings    int                            // memory for records that several requests share, in bytes; 0 for none
	CallTime      time.Duration                  // maximum time for which a daemon is asked; 0 for no limit
	MaxBody       int64                          // maximum length of a request's body; 0 if no body is allowed
	MaxParsed     int64                          // maximum memory for a body with the values that are parsed from it; 0 for no limit
	ReadBody      time.Duration                  // maximum time to wait for the next bytes of a body
	Log           *slog.Logger                   // nil for no log
	Lines         *Lines                         // limits the log lines about requests; nil for no limit
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
	if cfg.Worker == nil {
		cfg.Worker = NoWorker{}
	}
	if cfg.WatchInterval == 0 {
		cfg.WatchInterval = time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
}
