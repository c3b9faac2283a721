// Package confservertest plays controllers that send the configuration of a
// cluster.
package confservertest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Token is the only token that a controller accepts.
const Token = "a.b.c"

// Listen listens on a new address until the test ends. The network is "tcp" or
// "unix".
func Listen(t testing.TB, network string) net.Listener {
	t.Helper()
	at := "127.0.0.1:0"
	if network == "unix" {
		dir, err := sockettest.MkdirTemp("conf-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		at = filepath.Join(dir, "s")
	}
	ln, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// Address returns the address of ln in the form that confserver.Parse accepts.
func Address(ln net.Listener) string {
	if ln.Addr().Network() == "unix" {
		return "unix:" + ln.Addr().String()
	}
	return ln.Addr().String()
}

// Serve starts a controller on ln that speaks only the protocol v, or all
// protocols if v is 0. It answers a request for configuration files with answer.
// The controller runs until the test ends, or until stop is called.
func Serve(t testing.TB, ln net.Listener, v codec.Version, answer server.Handler) (stop func()) {
	s := &server.Server{Log: slog.New(slog.DiscardHandler), Oldest: v, Newest: v, Handlers: map[message.Type]server.Handler{
		message.RequestPing: func(context.Context, *server.Request) (message.Type, message.Body, error) {
			return message.ResponseRC, &message.RC{}, nil
		},
		message.RequestConfigFiles: func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
			var q message.ConfigFilesRequest
			if err := r.Decode(&q); err != nil || q != (message.ConfigFilesRequest{}) {
				t.Errorf("request %+v, %v", q, err)
			}
			return answer(ctx, r)
		},
	}, Verify: func(token, _ string) (server.Identity, error) {
		if token != Token {
			return server.Identity{}, errors.New("forged")
		}
		return server.Identity{UID: 100}, nil
	}}
	go s.Serve(ln)
	stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		s.Shutdown(ctx)
	}
	t.Cleanup(stop)
	return stop
}

// Send returns an answer with files.
func Send(files ...model.ConfigFile) server.Handler {
	return func(context.Context, *server.Request) (message.Type, message.Body, error) {
		return message.ResponseConfigFiles, &message.ConfigFiles{Files: files, SpoolDir: "/var/spool"}, nil
	}
}
