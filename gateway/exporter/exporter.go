// Package exporter is the process that serves the gateway's metrics to
// Prometheus. The process does not run as root, is not a worker, and has its
// own sandbox. It accepts connections on sockets that the parent has opened,
// and asks the dispatcher for the values of the metrics. It has no access to
// keys, tokens, API clients' connections or user names.
//
// Workers count events, the dispatcher adds up their counts, and the exporter
// gives names to the totals (package metric/table). No counts are lost when the
// exporter or a worker is restarted.
//
// Main runs the exporter.
package exporter

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/gateway/service"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// Rename sets the name of the process. It must be called from an init function.
func Rename() { self.Rename("schedrestd-expo") }

// Main runs the exporter and returns its exit status.
func Main() int {
	return service.Main(ipc.Exporter, confine, func(dispatcher *ipc.Channel) service.Service { return newExporter(dispatcher.Send) })
}

func confine(setup ipc.ServiceSetup) (sandbox.Layers, error) {
	s := setup.Sandbox
	return sandbox.Close(sandbox.Options{Kind: sandbox.Exporter, Audit: s&ipc.SandboxAudit != 0}, s&ipc.SandboxRequire != 0)
}

type exporter struct {
	send    func(ipc.Message, ...int) error
	http    *http.Server
	scrapes atomic.Uint64
	failed  atomic.Uint64
	places  *semaphore.Semaphore[netip.Addr] // a place is a scrape; keys are sources

	mu       sync.Mutex        // guards the fields below
	answered chan struct{}     // closed when the answer to the last request is complete, and then nil
	parts    map[uint16]uint64 // what has arrived of that answer
	cached   map[uint16]uint64 // last answer; not changed any more
	cachedAt time.Time         // time of the last answer
}

// Limits for clients that request metrics. These clients are not authenticated.
const (
	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 2 * time.Minute
	maxHeader    = 16 << 10
)

func newExporter(send func(ipc.Message, ...int) error) *exporter {
	e := &exporter{send: send,
		places: semaphore.New[netip.Addr](limit.Scrapes)}
	e.http = &http.Server{
		Handler:           e.handler(),
		ConnContext:       withConn,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
	return e
}

// Handle handles a message from the parent or the dispatcher.
func (e *exporter) Handle(m ipc.Received) (handled bool, err error) {
	switch msg := m.Message.(type) {
	case *ipc.MetricsFD:
		return true, e.serve(m.FDs[0])
	case *query.Samples:
		return true, e.add(msg)
	}
	return false, nil
}

// serve accepts connections on a listening socket.
func (e *exporter) serve(fd int) error {
	f := os.NewFile(uintptr(fd), "metrics")
	l, err := net.FileListener(f)
	f.Close()
	if err != nil {
		return fmt.Errorf("listen for scrapes: %w", err)
	}
	if local, ok := l.(*net.UnixListener); ok {
		local.SetUnlinkOnClose(false) // the socket belongs to the parent
	}
	go func() {
		if err := e.http.Serve(newListener(l)); err != http.ErrServerClosed {
			slog.Error("metrics not served", "error", err)
		}
	}()
	return nil
}

// Serve does nothing, because the exporter has no channel to workers.
func (e *exporter) Serve(*service.Client) {}

// Counters returns the counts since the start.
func (e *exporter) Counters() []any {
	return []any{"metrics", slog.GroupValue(slog.Uint64("scrapes", e.scrapes.Load()), slog.Uint64("failed", e.failed.Load()))}
}

// Close closes the HTTP server and its connections. It is called when the
// channel to the dispatcher has closed, before the process exits.
func (e *exporter) Close() { _ = e.http.Close() }
