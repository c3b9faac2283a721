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

// shutdownTimeout is how long requests that are being answered may hold up the end.
const shutdownTimeout = 10 * time.Second

// Serve serves the listeners, which it closes, until ctx ends, which is no error, a listener fails,
// or work does. work, when not nil, is what the daemon does of itself; it ends with its context.
func Serve(ctx context.Context, s *server.Server, listeners []net.Listener, log *slog.Logger, work func(context.Context) error) error {
	failed := make(chan error, len(listeners)+1)
	for _, ln := range listeners {
		log.Info("listening", "network", ln.Addr().Network(), "address", ln.Addr().String())
		go func() { failed <- s.Serve(ln) }()
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if work == nil {
			return
		}
		if err := work(run); err != nil {
			failed <- err
		}
	}()
	var err error
	select {
	case <-ctx.Done():
		log.Info("shutting down")
	case err = <-failed:
		err = fmt.Errorf("serve: %w", err)
	}
	end, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err = errors.Join(err, s.Shutdown(end))
	stop()
	<-done
	return err
}
