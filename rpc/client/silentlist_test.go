package client_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// TestSilentAfterALongList checks a controller that sends one long list and
// then no further answer. Fifty requests for lists follow.
// client.MaxLongRequests of them must reach the controller and time out. The
// other requests must be refused because of that limit. They must not be
// refused for lack of memory, because no answer uses memory at that time.
func TestSilentAfterALongList(t *testing.T) {
	t.Parallel()
	var silent atomic.Bool
	var lists, timeouts atomic.Int32
	list, done := aLongList(codec.Newest, 2000), make(chan struct{})
	ctl := script(t, "ctl", func(nc net.Conn, r message.Header) {
		switch {
		case r.Type == message.RequestPing:
			rc(nc, r.Version, 0)
		case silent.Load():
			lists.Add(1)
			<-done
		default:
			nc.Write(list)
		}
	})
	defer close(done)
	c := client.New(client.Config{Controllers: []client.Address{ctl.Address}, Answers: client.NewBudget(len(list) * 3 / 2), Timeout: 5 * time.Second})
	listJobs := func(user string) error {
		cred := model.Credential{Token: ann.Token, ActAs: user} // answers are shared only by calls of the same user
		_, err := c.Jobs(context.Background(), cred, model.Query{}, func(*model.Job) error { return nil })
		return err
	}
	if err := listJobs("u"); err != nil {
		t.Fatal(err)
	}
	silent.Store(true)
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			switch err := listJobs(fmt.Sprint("u", i)); {
			case errs.KindOf(err) == errs.Timeout:
				timeouts.Add(1)
			case errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "limit of concurrent long answers"):
				t.Errorf("got %v", err)
			}
		})
	}
	wait.Wait()
	if n := lists.Load(); n != client.MaxLongRequests || timeouts.Load() != n {
		t.Errorf("%d came as far as the controller, and %d failed because it does not answer", n, timeouts.Load())
	}
}
