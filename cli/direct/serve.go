package direct

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"

	"schedrestd/auth"
)

// Cause is the header in which an answer contains the whole error, with the
// cause that a gateway does not send to its clients. The text is escaped as a
// part of a URL's query. The user of this process may see the cause, because it
// is the cause of an error in this process.
const Cause = "Schedctl-Cause"

// Dial returns a connection to the handlers of the REST API. It is one end of a
// pipe inside this process.
func (c *Cluster) Dial(ctx context.Context) (net.Conn, error) {
	c.serve.Do(func() {
		c.conns = make(chan net.Conn)
		s := &http.Server{Handler: withCause(c.handler()), ErrorLog: log.New(io.Discard, "", 0),
			ConnContext: func(ctx context.Context, _ net.Conn) context.Context { return auth.WithPeer(ctx, self()) }}
		go s.Serve(&listener{conns: c.conns}) // until this process exits
	})
	ours, theirs := net.Pipe()
	select {
	case c.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A listener accepts the connections that Dial makes.
type listener struct {
	conns <-chan net.Conn
}

func (l *listener) Accept() (net.Conn, error) { return <-l.conns, nil }
func (l *listener) Close() error              { return nil }
func (l *listener) Addr() net.Addr            { return &net.UnixAddr{Name: "schedctl", Net: "unix"} }

// causeKey is the key of a context's value. The value is the header of the
// answer to a request.
type causeKey struct{}

// withCause returns a handler that calls next and that puts the error of a
// request into the answer.
func withCause(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), causeKey{}, w.Header())))
	})
}

// causes is the log of the handlers. It copies the error of a failed request to
// the answer's header, and discards everything else.
type causes struct{}

func (causes) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (c causes) WithAttrs([]slog.Attr) slog.Handler         { return c }
func (c causes) WithGroup(string) slog.Handler              { return c }

func (causes) Handle(ctx context.Context, r slog.Record) error {
	header, _ := ctx.Value(causeKey{}).(http.Header)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" && header != nil {
			header.Set(Cause, url.QueryEscape(a.Value.String()))
		}
		return true
	})
	return nil
}
