package client_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/origin"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// releaseController returns a controller that reports its release. The
// controller counts the requests for its release in *asked.
func releaseController(release string, asked *atomic.Int32) *server.Server {
	s := controller()
	s.Handlers[message.RequestBuildInfo] = decoded(message.ResponseBuildInfo, func(*message.BuildInfoRequest) (message.Body, error) {
		asked.Add(1)
		return &message.BuildInfo{Version: release}, nil
	})
	return s
}

// TestRelease checks that a controller's release is requested only once.
func TestRelease(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", releaseController("24.11.5", &asked))}})
	for range 3 {
		if got := c.Release(t.Context(), ann); got != "24.11.5" {
			t.Errorf("release %q", got)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestReleaseIsNoData checks that the controller's answer about its release does not
// count as data of the request that has caused the question, which may end before.
func TestReleaseIsNoData(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", releaseController("24.11.5", &asked))}})
	data := &origin.Origin{Digest: true}
	c.Release(origin.With(t.Context(), data), ann)
	if sum, known := data.Sum(); known || asked.Load() != 1 {
		t.Errorf("the data of the request has the digest %x; asked %d times", sum, asked.Load())
	}
}

// TestReleaseAfterLoss checks a controller that was lost. It may have come back
// with another release, so its release must be requested again.
func TestReleaseAfterLoss(t *testing.T) {
	t.Parallel()
	var asked, askedAgain atomic.Int32
	lost, back := serve(t, "tcp", releaseController("24.11.5", &asked)), serve(t, "tcp", releaseController("25.05.1", &askedAgain))
	current, now := lost, time.Now() // the client's goroutines read these variables, but only while the test waits
	c := client.New(client.Config{
		Controllers: []client.Address{lost},
		Dial: func(_ context.Context, _ client.Address) (net.Conn, error) {
			if current.Address == "" {
				return nil, errors.New("refused")
			}
			return net.Dial(current.Network, current.Address)
		},
	})
	c.Clock(func() time.Time { return now })
	release := func(want string) {
		t.Helper()
		if got := c.Release(t.Context(), ann); got != want {
			t.Errorf("release %q, want %q", got, want)
		}
	}
	release("24.11.5")
	current = client.Address{}
	if _, err := c.Stats(t.Context(), ann); errs.KindOf(err) != errs.Unavailable {
		t.Fatalf("while it is down: %v", err)
	}
	release("24.11.5") // the last known release
	current, now = back, now.Add(client.ReleaseRetry)
	release("25.05.1")
	now = now.Add(client.ReleaseTTL) // long enough for an unnoticed upgrade
	release("25.05.1")
	if asked.Load() != 1 || askedAgain.Load() != 2 {
		t.Errorf("asked %d times before and %d times after", asked.Load(), askedAgain.Load())
	}
}

// TestReleaseOfBackup checks that Release returns the release of the backup if
// the backup is the controller that answers.
func TestReleaseOfBackup(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	backup := serve(t, "tcp", releaseController("24.05.8", &asked))
	backup.Name = "backup"
	c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "unix", Address: t.TempDir() + "/gone"}, backup}})
	if got := c.Release(t.Context(), ann); got != "24.05.8" {
		t.Errorf("release %q", got)
	}
}

// TestReleaseUntold checks a controller that does not report its release.
// Release must return the first release with the controller's protocol version.
// It must not request the controller's release again immediately.
func TestReleaseUntold(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s := controller()
	s.Handlers[message.RequestBuildInfo] = func(context.Context, *server.Request) (message.Type, message.Body, error) {
		asked.Add(1)
		return 0, nil, errs.New(errs.Denied, "not to you")
	}
	c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", s)}})
	for range 3 {
		if got := c.Release(t.Context(), ann); got != codec.Newest.Release() {
			t.Errorf("release %q", got)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestReleaseUnknown checks that Release returns "" if no controller has ever
// answered.
func TestReleaseUnknown(t *testing.T) {
	t.Parallel()
	c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "unix", Address: t.TempDir() + "/gone"}}})
	if got := c.Release(t.Context(), model.Credential{Token: secret}); got != "" {
		t.Errorf("release %q", got)
	}
}

// A neverDone is a context that panics if a caller waits for its end.
type neverDone struct{ context.Context }

func (neverDone) Done() <-chan struct{} { panic("it is waited for") }

// TestReleaseOfHanging checks a controller that hangs. Release must wait for
// its answer for at most half a second. The answer must be stored when it
// arrives.
func TestReleaseOfHanging(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	proceed := make(chan struct{})
	s := releaseController("24.11.5", &asked)
	handle := s.Handlers[message.RequestBuildInfo]
	s.Handlers[message.RequestBuildInfo] = func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		<-proceed
		return handle(ctx, r)
	}
	c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", s)}})
	var elapsed atomic.Int64
	start := time.Now()
	c.Clock(func() time.Time { return start.Add(time.Duration(elapsed.Load())) })
	if _, err := c.Ping(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	if got := c.Release(t.Context(), ann); got == "24.11.5" {
		t.Errorf("release %q before it was reported", got)
	}
	elapsed.Store(int64(client.ReleaseWait))
	if got := c.Release(neverDone{t.Context()}, ann); got == "24.11.5" {
		t.Errorf("release %q before it was reported", got)
	}
	close(proceed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for c.Release(ctx, ann) != "24.11.5" { // ends with the test's own time limit
		if t.Context().Err() != nil {
			t.Fatal("it is never known")
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
