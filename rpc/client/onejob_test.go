package client_test

import (
	"context"
	"net"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// TestJobIsAList checks that each task of an array is passed on as soon as it
// is decoded: the client must not collect the tasks first. If nothing has
// changed, no task may be passed on.
func TestJobIsAList(t *testing.T) {
	t.Parallel()
	c := client.New(client.Config{Controllers: []client.Address{miscounting(t)}})
	given := 0
	each := func(*model.Job) error { given++; return nil }
	if _, err := c.Job(context.Background(), ann, 7, model.Query{}, each); errs.KindOf(err) != errs.BadAnswer || given != 2000 {
		t.Errorf("%d jobs before the end that is none: %v", given, err)
	}
	list := aLongList(codec.Newest, 3) // its date is 7
	ctl := script(t, "ctl", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing {
			rc(nc, r.Version, 0)
			return
		}
		nc.Write(list)
	})
	c, given = client.New(client.Config{Controllers: []client.Address{ctl.Address}}), 0
	if times, err := c.Job(context.Background(), ann, 7, model.Query{Since: 8}, each); errs.KindOf(err) != errs.Unchanged || given != 0 || times.LastUpdate != 7 {
		t.Errorf("unchanged: %d jobs, %+v, %v", given, times, err)
	}
	if _, err := c.Job(context.Background(), ann, 7, model.Query{Since: 7}, each); err != nil || given != 3 {
		t.Errorf("changed: %d jobs, %v", given, err)
	}
}
