package client_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

var eve = model.Credential{Token: "forged"}

// counted returns a configuration with one daemon, and a counter of the
// connections to that daemon.
func counted(a client.Address) (cfg client.Config, connections *atomic.Int32) {
	connections = new(atomic.Int32)
	return client.Config{Controllers: []client.Address{a}, Accounting: []client.Address{a}, Cluster: "c1",
		Dial: func(_ context.Context, a client.Address) (net.Conn, error) {
			connections.Add(1)
			return net.Dial(a.Network, a.Address)
		}}, connections
}

// TestVerifyIsCheap checks that the verification of a token causes little work
// for the daemon. For each token, whether valid or forged, the client may make
// only one connection and send only the cheapest request that requires a
// credential. For the first token it may make further connections, to find the
// protocol version.
func TestVerifyIsCheap(t *testing.T) {
	t.Parallel()
	var asked []message.Type
	pinged := controller()
	for kind, handle := range pinged.Handlers {
		pinged.Handlers[kind] = func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
			asked = append(asked, kind)
			return handle(ctx, r)
		}
	}
	ctl, toController := counted(serve(t, "tcp", pinged))
	dbd, toAccounting := counted(serve(t, "tcp", &server.Server{Persistent: map[message.Type]server.Handler{
		message.AccountingGetStats: func(context.Context, *server.Request) (message.Type, message.Body, error) {
			asked = append(asked, message.AccountingGetStats)
			return message.AccountingGotStats, &message.AccountingStats{}, nil
		},
	}}))
	for _, daemon := range []struct {
		name        string
		verify      func(context.Context, model.Credential) error
		connections *atomic.Int32
		first       int32
	}{
		{"controller", client.New(ctl).Verify, toController, 2},
		{"accounting", client.NewAccounting(dbd).Verify, toAccounting, 1},
	} {
		for i, tt := range []struct {
			cred model.Credential
			kind errs.Kind
		}{{eve, errs.Unauthenticated}, {ann, 0}, {eve, errs.Unauthenticated}, {ann, 0}} {
			daemon.connections.Store(0)
			err := daemon.verify(context.Background(), tt.cred)
			if (err == nil) != (tt.kind == 0) || err != nil && errs.KindOf(err) != tt.kind {
				t.Errorf("%s, %d: %v", daemon.name, i, err)
			}
			want := int32(1)
			if i == 0 {
				want = daemon.first
			}
			if n := daemon.connections.Load(); n != want {
				t.Errorf("%s, %d: %d connections, want %d", daemon.name, i, n, want)
			}
		}
	}
	for _, kind := range asked {
		if kind != message.RequestPing {
			t.Errorf("message %d was asked", kind)
		}
	}
	if len(asked) != 2 { // ann's two pings; the forged tokens were refused before any handler was called
		t.Errorf("asked %v", asked)
	}
}

// TestVerifyByABackup checks that a token does not count as verified if a
// backup on standby answers. An unreachable daemon must not count as a refusal.
func TestVerifyByABackup(t *testing.T) {
	t.Parallel()
	standby := script(t, "ctl1", func(nc net.Conn, h message.Header) { rc(nc, h.Version, fault.StandbyUseBackup) })
	backup := serve(t, "tcp", controller())
	backup.Name = "ctl2"
	c := client.New(client.Config{Controllers: []client.Address{standby.Address, backup}})
	if err := c.Verify(context.Background(), ann); err != nil {
		t.Error(err)
	}
	if err := c.Verify(context.Background(), eve); errs.KindOf(err) != errs.Unauthenticated {
		t.Error(err)
	}
	c = client.New(client.Config{Controllers: []client.Address{standby.Address}})
	if err := c.Verify(context.Background(), ann); err == nil || errs.KindOf(err) == errs.Unauthenticated {
		t.Errorf("standby: %v", err)
	}
	down := nowhere(t, "gone")
	cfg := client.Config{Controllers: []client.Address{down}, Accounting: []client.Address{down}}
	for _, verify := range []func(context.Context, model.Credential) error{client.New(cfg).Verify, client.NewAccounting(cfg).Verify} {
		if err := verify(context.Background(), ann); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("down: %v", err)
		}
	}
}
