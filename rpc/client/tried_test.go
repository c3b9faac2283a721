package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/rpc/client"
)

// TestTried checks that a call uses each address of a host that Dial chooses, one after
// the other, and none twice. If none works, the error must contain the reason of each.
func TestTried(t *testing.T) {
	t.Parallel()
	l := newCluster(t, "a")
	dial := l.config.Dial
	host := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.3")}
	var works, used netip.Addr
	l.config.Dial = func(ctx context.Context, a client.Address) (net.Conn, error) {
		i := slices.IndexFunc(host, func(h netip.Addr) bool { return !slices.Contains(*a.Tried, h) })
		if i < 0 {
			return nil, errors.New("no address is left")
		}
		used = host[i]
		*a.Tried = append(*a.Tried, used)
		if used != works {
			return nil, fmt.Errorf("%s is down", used)
		}
		return dial(ctx, a)
	}
	for _, works = range host {
		c := client.New(l.config)
		if err := c.Verify(context.Background(), ann); err != nil || used != works {
			t.Errorf("%s works, used %s: %v", works, used, err)
		}
	}
	works = netip.Addr{}
	err := client.New(l.config).Verify(context.Background(), ann)
	for _, a := range host {
		if err == nil || strings.Count(err.Error(), a.String()+" is down") != 1 || strings.Contains(err.Error(), "no address is left") {
			t.Errorf("without %s: %v", a, err)
		}
	}
}

// TestUnresolved checks that controllers without an address are an outage from the
// start, with this reason, until one has accepted a connection.
func TestUnresolved(t *testing.T) {
	t.Parallel()
	l := newCluster(t, "a", "b")
	dial := l.config.Dial
	resolved := false
	l.config.Dial = func(ctx context.Context, a client.Address) (net.Conn, error) {
		if !resolved {
			return nil, fmt.Errorf("dial %s: %w", a.Name, client.ErrUnresolved)
		}
		return dial(ctx, a)
	}
	c := client.New(l.config)
	now := time.Now()
	c.Clock(func() time.Time { return now })
	if err := c.Reachable(context.Background()); err != client.ErrUnresolved {
		t.Errorf("before: %v", err)
	}
	resolved, now = true, now.Add(time.Second)
	if err := c.Reachable(context.Background()); err != nil {
		t.Errorf("after: %v", err)
	}
}
