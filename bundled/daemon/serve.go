package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"schedrestd/rpc/server"
)

// shutdownTimeout limits how long the shutdown waits for pending requests.
const shutdownTimeout = 10 * time.Second

// Serve serves the listeners until ctx is done. If work is not nil, Serve also
// calls work, which does the daemon's background work and must return when its
// context is done. If work fails or a listener can't be served, Serve stops
// early.
//
// Serve always shuts the server down and closes the listeners. It returns nil,
// or an error if work, a listener or the shutdown failed.
func Serve(ctx context.Context, s *server.Server, listeners []net.Listener, log *slog.Logger,
	work func(context.Context) error) error {
	failures := make(chan error, len(listeners)+1)
	for _, ln := range listeners {
		log.Info("listening", "network", ln.Addr().Network(), "address", ln.Addr().String())
		go func() { failures <- s.Serve(ln) }()
	}
	workCtx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if work == nil {
			return
		}
		if err := work(workCtx); err != nil {
			failures <- err
		}
	}()
	var err error
	select {
	case <-ctx.Done():
		log.Info("shutting down")
	case err = <-failures:
		err = fmt.Errorf("serve: %w", err)
	}
	shutdownCtx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err = errors.Join(err, s.Shutdown(shutdownCtx))
	stop()
	<-done
	return err
}
