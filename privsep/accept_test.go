package privsep

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/internal/socket"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/privsep/identity"
	"schedrestd/privsep/listen"
)

// accept starts a parent that accepts connections from a listener, as many from
// one user as permitted. Before that, it calls before with the listener's address.
// It returns the dispatcher's end of the channel for connections.
func accept(t *testing.T, permitted float64, at ipc.Listen, before func(address string)) *ipc.Channel {
	t.Helper()
	c := completeConfig(work.Setup{})
	c.Log = slog.New(slog.DiscardHandler)
	m := newMonitor(c, identity.Service{})
	m.arrivals = rate.NewBuckets[uint32](limit.ParentArrivals.Of(permitted, 1e-6))
	list, err := listen.Open(listen.Options{Addresses: []ipc.Listen{at}, Unix: socket.Options{Mode: 0o600}})
	must(t, err)
	t.Cleanup(func() { listen.CloseAll(list) })
	channel, fd, err := ipc.Pair(ipc.Acceptor, ipc.Dispatcher)
	must(t, err)
	t.Cleanup(func() { channel.Close() })
	dispatcher, err := ipc.Open(fd, ipc.Dispatcher, ipc.Acceptor)
	must(t, err)
	t.Cleanup(func() { dispatcher.Close() })
	m.arrivalChannel.Store(channel)
	before(list[0].Name)
	go m.acceptFrom(list[0], c)
	return dispatcher
}

// TestArrivals checks that the parent closes the connections of a local user who
// connects too often, and does not pass them to the dispatcher.
func TestArrivals(t *testing.T) {
	t.Parallel()
	const permitted = 3
	path := sockettest.Dir(t) + "/s"
	dispatcher := accept(t, permitted, ipc.Listen{Text: "unix:" + path, Network: ipc.Unix, Path: path}, func(string) {})
	for n := range 2 * permitted {
		nc, err := net.Dial("unix", path)
		must(t, err)
		defer nc.Close()
		if n < permitted {
			r, err := dispatcher.Receive()
			must(t, err)
			if _, ok := r.Message.(*ipc.Arrival); !ok {
				t.Errorf("connection %d: %T", n, r.Message)
			}
			continue
		}
		must(t, nc.SetReadDeadline(time.Now().Add(10*time.Second)))
		if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("connection %d stays open: %v", n, err)
		}
	}
}

// TestGoneClient checks that the parent does not pass on a TCP connection that its
// client has reset.
func TestGoneClient(t *testing.T) {
	t.Parallel()
	var second net.Conn
	dispatcher := accept(t, 1, ipc.Listen{Text: "127.0.0.1:0", Network: ipc.TCP, Addresses: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}}, func(address string) {
		dial := func() *net.TCPConn {
			nc, err := net.Dial("tcp", address)
			must(t, err)
			_, err = nc.Write([]byte("GET"))
			must(t, err)
			return nc.(*net.TCPConn)
		}
		first := dial()
		must(t, first.SetLinger(0))
		first.Close()
		second = dial()
	})
	defer second.Close()
	r, err := dispatcher.Receive()
	must(t, err)
	if a, ok := r.Message.(*ipc.Arrival); !ok || a.Addr != second.LocalAddr().String() {
		t.Errorf("got %+v, want the connection from %s", r.Message, second.LocalAddr())
	}
}
