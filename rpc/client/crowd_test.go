package client_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// TestCrowdBeforeADeadController checks concurrent requests to a machine that
// is down. Only one request must try to connect, and all must fail with its
// error, which is a 503 and not a timeout.
func TestCrowdBeforeADeadController(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dialled := 0
		c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: "192.0.2.1:6817"}},
			Dial: func(ctx context.Context, a client.Address) (net.Conn, error) {
				dialled++
				<-ctx.Done()
				return nil, ctx.Err()
			}})
		start := time.Now() // time of the synctest bubble
		var wait sync.WaitGroup
		for range 50 {
			wait.Go(func() {
				if err := c.Verify(context.Background(), ann); errs.KindOf(err) != errs.Unavailable {
					t.Errorf("got %v", err)
				}
			})
		}
		wait.Wait()
		if took := time.Since(start); dialled != 1 || took != 2*time.Second {
			t.Errorf("dialled %d times within %v", dialled, took)
		}
		if _ = c.Verify(context.Background(), ann); dialled != 2 {
			t.Error("who comes later has it from those before")
		}
	})
}

// TestCrowdBehindOneWhoLeft checks requests that wait for the result of another
// request's probe. If the client of that other request disconnects, the waiting
// requests must not conclude that the controller has failed. The two requests
// are those of different users, who share no answer.
func TestCrowdBehindOneWhoLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dialled := 0
		c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: "192.0.2.1:6817"}},
			Dial: func(ctx context.Context, a client.Address) (net.Conn, error) {
				dialled++
				<-ctx.Done()
				return nil, ctx.Err()
			}})
		first, leave := context.WithCancel(context.Background())
		var wait sync.WaitGroup
		wait.Go(func() { _ = c.Verify(first, ann) })
		synctest.Wait()
		wait.Go(func() { _ = c.Verify(context.Background(), model.Credential{Token: ann.Token, ActAs: "ben"}) })
		synctest.Wait()
		leave()
		wait.Wait()
		if dialled != 2 {
			t.Errorf("dialled %d times", dialled)
		}
	})
}
