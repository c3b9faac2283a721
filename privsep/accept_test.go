package privsep

import (
	"errors"
	"io"
	"log/slog"
	"net"
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

// TestArrivals checks that the parent closes the connections of a local user who
// connects too often, and does not pass them to the dispatcher.
func TestArrivals(t *testing.T) {
	t.Parallel()
	const permitted = 3
	c := completeConfig(work.Setup{})
	c.Log = slog.New(slog.DiscardHandler)
	m := newMonitor(c, identity.Service{})
	m.arrivals = rate.NewBuckets[uint32](limit.ParentArrivals.Of(permitted, 1e-6))
	path := sockettest.Dir(t) + "/s"
	list, err := listen.Open(listen.Options{Addresses: []ipc.Listen{{Text: "unix:" + path, Network: ipc.Unix, Path: path}}, Unix: socket.Options{Mode: 0o600}})
	must(t, err)
	t.Cleanup(func() { listen.CloseAll(list) })
	channel, fd, err := ipc.Pair(ipc.Acceptor, ipc.Dispatcher)
	must(t, err)
	t.Cleanup(func() { channel.Close() })
	dispatcher, err := ipc.Open(fd, ipc.Dispatcher, ipc.Acceptor)
	must(t, err)
	t.Cleanup(func() { dispatcher.Close() })
	m.arrivalChannel.Store(channel)
	go m.acceptFrom(list[0], c)
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
