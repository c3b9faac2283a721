package ctld

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/rpc/server"
	"schedrestd/socket"
)

// shutdownTimeout is how long requests that are being answered may hold up the end.
const shutdownTimeout = 10 * time.Second

// Serve is the daemon: it serves as c says until ctx ends, which is no error. Jobs that run then
// go on running, and the next controller takes them up.
func Serve(ctx context.Context, c *conf.Cluster, version string, log *slog.Logger) error {
	unix.Umask(0o077)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil { // it holds the cluster's key
		return errs.Wrap(err, errs.Internal, "switch off core dumps")
	}
	user, err := schedUser(c)
	if err != nil {
		return err
	}
	cfg, verify, err := configure(c, user, version, log)
	if err != nil {
		return err
	}
	// Before the state is read: clients of a controller that returns wait instead of failing.
	listeners, err := patiently(func() ([]net.Listener, error) { return listen(c) })
	if err != nil {
		return err
	}
	controller, err := Open(cfg)
	if err != nil {
		for _, ln := range listeners {
			ln.Close()
		}
		return err
	}
	defer controller.Close()
	s := &server.Server{Handlers: controller.Handlers(), Verify: verify, Log: log}
	return serve(ctx, s, listeners, controller, log)
}

// patience is for how long patiently tries.
const patience = 2 * time.Second

// patiently tries again what another process is in the way of. A controller that is killed while it
// forks has a child for a moment, until that executes its own program, which still
// has all that was open: the port, and the lock beside the socket. Whoever restarts it
// at once must not fail for that.
func patiently[T any](open func() (T, error)) (T, error) {
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		opened, err := open()
		if err == nil || errs.KindOf(err) != errs.Conflict || time.Since(begun) > patience {
			return opened, err
		}
	}
}

// listen opens the TCP port, and the UNIX socket when there is one. Who connects to the socket,
// the kernel says, so it is open to everybody of this machine; but a controller that is
// not root can run its own user's jobs alone, and keeps others out.
func listen(c *conf.Cluster) ([]net.Listener, error) {
	address := net.JoinHostPort(c.Controllers[0].Address, strconv.Itoa(c.ControllerPort))
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errs.Wrap(err, errs.Conflict, "listen on %s", address)
	}
	if c.AuthSocket == "" {
		return []net.Listener{tcp}, nil
	}
	mode := os.FileMode(0o600)
	if os.Geteuid() == 0 {
		mode = 0o666
	}
	local, err := socket.Listen(c.AuthSocket, socket.Options{Mode: mode, Private: become.PrivateGroup})
	if err != nil {
		tcp.Close()
		return nil, err
	}
	return []net.Listener{tcp, local}, nil
}

// serve serves until ctx ends, a listener fails, or the controller can't go on.
func serve(ctx context.Context, s *server.Server, listeners []net.Listener, c *Controller, log *slog.Logger) error {
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
		if err := c.Run(run); err != nil {
			failed <- err
		}
	}()
	var err error
	select {
	case <-ctx.Done():
		log.Info("shutting down; jobs go on", "jobs", len(c.unended()))
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
