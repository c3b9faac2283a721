package client_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/message"
)

// TestReroute checks that the error names the cluster to which the controller
// refers the client.
func TestReroute(t *testing.T) {
	t.Parallel()
	for want, body := range map[string]*message.Reroute{`the cluster "east"`: {Cluster: &model.Cluster{Name: "east"}}, "another cluster": {}} {
		ctl := script(t, "ctl", func(nc net.Conn, r message.Header) {
			if r.Type == message.RequestPing {
				rc(nc, r.Version, 0)
				return
			}
			answer(nc, r.Version, message.ResponseReroute, body)
		})
		c := client.New(client.Config{Controllers: []client.Address{ctl.Address}})
		if _, err := c.Submit(context.Background(), ann, &model.JobDesc{Script: "x"}); errs.KindOf(err) != errs.Unsupported || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
