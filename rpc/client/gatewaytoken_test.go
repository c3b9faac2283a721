package client_test

import (
	"context"
	"fmt"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/message"
)

// TestGatewayToken checks that daemons never get a gateway token, but a token of
// their own in its place, which is asked for again for each message, and that no
// daemon gets anything if the gateway token is revoked.
func TestGatewayToken(t *testing.T) {
	t.Parallel()
	j, asked, refusal := &journal{}, 0, error(nil)
	cfg := client.Config{
		Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: sockettest.Serve(t, "tcp", j.controller)}},
		Accounting:  []client.Address{{Name: "dbd", Network: "tcp", Address: sockettest.Serve(t, "tcp", j.accounting)}},
		Bearer: func(_ context.Context, token, actAs string) (string, error) {
			if asked++; token != "gateway token" || actAs != "alice" {
				t.Errorf("asked for %q and %q", token, actAs)
			}
			return fmt.Sprint("bearer ", asked), refusal
		},
	}
	c, a := client.New(cfg), client.NewAccounting(cfg)
	cred := model.Credential{Token: "gateway token", ActAs: "alice", Gateway: true} // the name is that of the token's own user
	ways := []struct {
		name string
		ask  func() error
	}{
		{"submit", func() error { _, err := c.Submit(t.Context(), cred, &model.JobDesc{}); return err }},
		{"verify", func() error { return c.Verify(t.Context(), cred) }},
		{"accounting", func() error { return a.Verify(t.Context(), cred) }},
	}
	received := func() []message.Frame {
		j.mu.Lock()
		defer j.mu.Unlock()
		defer func() { j.requests = nil }()
		return j.requests
	}
	for _, way := range ways {
		_ = way.ask() // these daemons' answers to a submission contain no job
		list := received()
		if len(list) == 0 {
			t.Fatalf("%s: nothing was sent", way.name)
		}
		for _, f := range list {
			if f.Credential.Plugin != message.PluginJWT || f.Credential.ActAs != "" || f.Credential.Token[:7] != "bearer " {
				t.Errorf("%s: the daemon got %+v", way.name, f.Credential)
			}
		}
		if last := list[len(list)-1].Credential.Token; last != fmt.Sprint("bearer ", asked) {
			t.Errorf("%s: the daemon got %q after %d questions", way.name, last, asked)
		}
	}
	for _, kind := range []errs.Kind{errs.Unauthenticated, errs.Unavailable} {
		refusal = errs.New(kind, "refused")
		a = client.NewAccounting(cfg) // without a session
		for _, way := range ways {
			err := way.ask()
			if n := len(received()); errs.KindOf(err) != kind || n > 0 {
				t.Errorf("%s: %v, and %d requests", way.name, err, n)
			}
		}
	}
}
