package client_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// A closer imitates a controller of Slurm 24.05 or earlier. It closes the
// connection if the version is not supported, and also if the credential is
// invalid.
type closer struct {
	client.Address
	newest, oldest atomic.Uint32
	opened         atomic.Int32 // number of connections
}

func newCloser(t *testing.T, newest, oldest codec.Version) *closer {
	c := &closer{}
	c.newest.Store(uint32(newest))
	c.oldest.Store(uint32(oldest))
	c.Address = client.Address{Name: "ctl", Network: "tcp", Address: sockettest.Serve(t, "tcp", func(nc net.Conn) {
		c.opened.Add(1)
		b, err := wire.Read(nc, 1<<20)
		if err != nil {
			return
		}
		f, _ := message.ParseFrame(b)
		v := uint32(f.Header.Version)
		if v > c.newest.Load() || v < c.oldest.Load() || f.Credential.Token != secret {
			return
		}
		rc(nc, f.Header.Version, 0)
	})}
	return c
}

// connections returns the number of connections since the last call.
func (c *closer) connections() int { return int(c.opened.Swap(0)) }

// TestClosersRefuse checks that the client returns a 401 if the connection is
// closed without an answer, because controllers up to Slurm 24.05 refuse
// invalid credentials in this way. It must make no difference whether the
// controller has answered before. Requests with a valid credential must still
// succeed.
func TestClosersRefuse(t *testing.T) {
	t.Parallel()
	for _, v := range [][2]codec.Version{{codec.V2205, codec.V2205}, {codec.V2311, codec.V2205}, {codec.V2405, codec.V2302}} {
		t.Run(v[0].Release(), func(t *testing.T) {
			ctl := newCloser(t, v[0], v[1])
			c := client.New(client.Config{Controllers: []client.Address{ctl.Address}})
			ctx := context.Background()
			refused := func(known string) {
				t.Helper()
				err := c.Verify(ctx, eve)
				if errs.KindOf(err) != errs.Unauthenticated || !strings.Contains(err.Error(), "accept") || !strings.Contains(err.Error(), "speaks none") {
					t.Errorf("%s: forged: %v", known, err)
				}
				if _, err := c.Ping(ctx, eve); errs.KindOf(err) != errs.Unauthenticated {
					t.Errorf("%s: ping, forged: %v", known, err)
				}
			}
			refused("nothing known")
			if err := c.Verify(ctx, ann); err != nil {
				t.Fatal(err)
			}
			refused("known")
			ctl.connections()
			if err := c.Verify(ctx, ann); err != nil || ctl.connections() != 1 {
				t.Errorf("what was known is lost: %v", err)
			}
		})
	}
}

// TestForgedTokensAreCheap checks that each forged token causes few connections
// to a controller, even if that controller has never accepted a token. Despite
// many forged tokens, requests with a valid token must succeed, and the client
// must soon notice that the controller's release has changed.
func TestForgedTokensAreCheap(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"known": true, "nothing known": false} {
		t.Run(name, func(t *testing.T) {
			ctl := newCloser(t, codec.V2311, codec.V2205)
			c := client.New(client.Config{Controllers: []client.Address{ctl.Address}})
			now := time.Now()
			c.Clock(func() time.Time { return now })
			ctx := context.Background()
			if known {
				if err := c.Verify(ctx, ann); err != nil {
					t.Fatal(err)
				}
			}
			ctl.connections()
			const many = 50
			for range many {
				if err := c.Verify(ctx, eve); errs.KindOf(err) != errs.Unauthenticated {
					t.Fatal(err)
				}
			}
			if n := ctl.connections(); n > many*3+client.MaxClosedProbes*8 {
				t.Errorf("%d forged tokens took %d connections", many, n)
			}
			ctl.newest.Store(uint32(codec.V2302)) // another release that closes on invalid credentials
			if err := c.Verify(ctx, ann); err != nil {
				t.Errorf("a good one is kept out: %v", err)
			}
			now = now.Add(client.ClosedProbeWindow)
			ctl.connections()
			if c.Verify(ctx, eve); ctl.connections() < 8 {
				t.Error("it is never probed again")
			}
		})
	}
}

// TestSilenceOfOthers checks a controller whose release answers an invalid
// credential with an error. If that controller closes the connection without an
// answer, the client's error must not blame the credential.
func TestSilenceOfOthers(t *testing.T) {
	t.Parallel()
	closes := atomic.Bool{}
	p := script(t, "ctl", func(nc net.Conn, r message.Header) {
		if !closes.Load() {
			rc(nc, r.Version, 0)
		}
	})
	c := client.New(client.Config{Controllers: []client.Address{p.Address}})
	if err := c.Verify(context.Background(), ann); err != nil {
		t.Fatal(err)
	}
	closes.Store(true)
	for range client.MaxClosedProbes + 2 {
		if err := c.Verify(context.Background(), ann); errs.KindOf(err) != errs.BadAnswer {
			t.Errorf("got %v", err)
		}
	}
	if pings, err := c.Ping(context.Background(), ann); err != nil || len(pings) != 1 || pings[0].Responding {
		t.Errorf("ping: %+v, %v", pings, err)
	}
	closes.Store(false)
	if err := c.Verify(context.Background(), ann); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestNobodyBehind checks a peer that accepts connections and closes them, like
// a load balancer whose controller is down. However many requests the client
// sends, it must not conclude that a controller refuses the token. The test
// covers a controller that never answered, and one whose version the client has
// forgotten.
func TestNobodyBehind(t *testing.T) {
	t.Parallel()
	up := atomic.Bool{}
	address := sockettest.Serve(t, "tcp", func(nc net.Conn) {
		if !up.Load() {
			return
		}
		if b, err := wire.Read(nc, 1<<20); err == nil {
			f, _ := message.ParseFrame(b)
			rc(nc, f.Header.Version, 0)
		}
	})
	c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: address}}})
	ctx := context.Background()
	down := func(known string) {
		t.Helper()
		for range client.MaxClosedProbes + 2 {
			if err := c.Verify(ctx, ann); errs.KindOf(err) != errs.BadAnswer && errs.KindOf(err) != errs.Unavailable {
				t.Errorf("%s: %v", known, err)
			}
		}
		if pings, err := c.Ping(ctx, ann); err != nil || pings[0].Responding {
			t.Errorf("%s: ping: %+v, %v", known, pings, err)
		}
	}
	down("nothing known")
	up.Store(true)
	if err := c.Verify(ctx, ann); err != nil {
		t.Fatal(err)
	}
	up.Store(false)
	if _, err := c.Submit(ctx, ann, &model.JobDesc{Script: "#!/bin/sh\n"}); errs.KindOf(err) == errs.Unauthenticated {
		t.Errorf("submit: %v", err)
	}
	down("answered, and forgotten")
}

// TestSilentPrimary checks a primary controller that closes every connection
// without an answer. If another controller accepts the credential, the request
// must succeed.
func TestSilentPrimary(t *testing.T) {
	t.Parallel()
	primary := script(t, "ctl", func(net.Conn, message.Header) {})
	backup := script(t, "bak", func(nc net.Conn, r message.Header) {
		code := uint32(fault.Standby)
		if r.Type != message.RequestPing {
			code = 0
		}
		rc(nc, r.Version, code)
	})
	c := client.New(client.Config{Controllers: []client.Address{primary.Address, backup.Address}})
	pings, err := c.Ping(context.Background(), ann)
	for i := range pings {
		pings[i].Latency, pings[i].Err = 0, nil
	}
	want := []model.Ping{{Hostname: "ctl", Mode: "primary", Primary: true}, {Hostname: "bak", Mode: "backup1", Responding: true}}
	if diff := cmp.Diff(want, pings); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
