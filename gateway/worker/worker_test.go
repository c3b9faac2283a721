package worker

import (
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/worker/broker"
	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/conntest"
	"schedrestd/gateway/worker/keys"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security/self"
)

func TestProveNamesTheDifference(t *testing.T) {
	err := self.VerifyAttributes(&ipc.Attributes{UID: 4711}, 1, 1)
	if err == nil || !strings.Contains(err.Error(), `expected "4711 4711 4711 4711"`) {
		t.Errorf("got %v", err)
	}
}

// TestStartedByHand checks that a worker that schedrestd did not start refuses
// to serve.
func TestStartedByHand(t *testing.T) {
	if _, err := unix.GetsockoptInt(ipc.WorkerFD, unix.SOL_SOCKET, unix.SO_TYPE); err == nil {
		t.Skip("descriptor 3 of the tests is a socket")
	}
	built := false
	if status := Main(func(work.Setup, *keys.Keys, *broker.Broker) (Handler, error) { built = true; return nil, nil }); status != 2 || built {
		t.Errorf("status %d, built %v", status, built)
	}
}

// connPair returns both ends of a connection. The worker's end is like a
// connection that the dispatcher passed.
func connPair(t *testing.T, m ipc.Connection, stall time.Duration) (*clientconn.Conn, net.Conn) {
	t.Helper()
	fd, client := conntest.Pair(t)
	c, err := clientconn.New(fd, &m, stall)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Conn.Close() })
	return c, client
}
