package client_test

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/munge"
)

// TestMungeFails checks a munged that fails to issue a credential. Another
// controller would not help, so the client must not try one. The failure must
// neither change the state of the controller that would have received the
// request nor be reported as a failure of that controller.
func TestMungeFails(t *testing.T) {
	t.Parallel()
	j, asked, fails := &journal{}, atomic.Int32{}, atomic.Bool{}
	munged := func(nc net.Conn) {
		asked.Add(1)
		if !fails.Load() {
			j.munged(nc)
		}
	}
	one := func(network string) client.Address {
		return client.Address{Name: network, Network: "tcp", Address: sockettest.Serve(t, "tcp", j.controller)}
	}
	cfg := client.Config{
		Controllers: []client.Address{one("ctl"), one("bak")},
		Accounting: []client.Address{
			{Name: "dbd", Network: "tcp", Address: sockettest.Serve(t, "tcp", j.accounting)},
			{Name: "dbd2", Network: "tcp", Address: sockettest.Serve(t, "tcp", j.accounting)},
		},
		Munge: &munge.Client{Socket: filepath.Join(t.TempDir(), "none")},
	}
	cfg.Munge.Socket = sockettest.Serve(t, "unix", munged)
	local := model.Credential{}
	c, a := client.New(cfg), client.NewAccounting(cfg)
	ways := map[string]func() error{
		"submit":          func() error { _, err := c.Submit(context.Background(), local, &model.JobDesc{}); return err },
		"verify":          func() error { return c.Verify(context.Background(), local) },
		"ping":            func() error { _, err := c.Ping(context.Background(), local); return err },
		"accounting":      func() error { return a.Verify(context.Background(), local) },
		"accounting ping": func() error { _, err := a.Ping(context.Background(), local); return err },
	}
	if err := ways["verify"](); err != nil {
		t.Fatal(err)
	}
	each := map[string]int32{}
	fails.Store(true)
	for name, ask := range ways {
		asked.Store(0)
		err := ask()
		if e, ok := err.(*errs.Error); !ok || e.Kind != errs.Unavailable && e.Kind != errs.BadAnswer || e.Code != "" || e.Message[:6] != "munged" {
			t.Errorf("%s: got %v", name, err)
		}
		each[name] = asked.Load()
	}
	if each["submit"] != each["verify"] || each["submit"] != each["accounting"] || each["ping"] != 2*each["verify"] {
		t.Errorf("munged was asked so often: %v", each) // each number includes the retries by munged's client; ping tries both controllers
	}
	fails.Store(false)
	j.mu.Lock()
	j.requests = nil
	j.mu.Unlock()
	if err := ways["verify"](); err != nil || len(j.requests) != 1 {
		t.Errorf("afterwards: %v, and the controller received %d requests: its version was forgotten", err, len(j.requests))
	}
}
