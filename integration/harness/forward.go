package harness

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/vishvananda/netns"

	"schedrestd/bundled/demo/thread"
)

// InNetwork calls the function do in a network namespace.
func InNetwork(ns netns.NsHandle, do func() error) error {
	return thread.OnNewThread(func() error {
		if err := netns.Set(ns); err != nil {
			return err
		}
		return do()
	})
}

// DialFrom returns a function that connects to address from a network namespace.
func DialFrom(ns netns.NsHandle, network, address string) func() (net.Conn, error) {
	return func() (conn net.Conn, err error) {
		err = InNetwork(ns, func() (err error) {
			conn, err = net.Dial(network, address)
			return err
		})
		return conn, err
	}
}

// ForwardFrom listens on a TCP address in a network namespace until the test ends.
// It forwards each connection to one that the function dial makes.
func ForwardFrom(t *testing.T, ns netns.NsHandle, address string, dial func() (net.Conn, error)) {
	t.Helper()
	var l net.Listener
	Must(t, InNetwork(ns, func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	}))
	serveListener(t, l, func(in net.Conn) {
		out, err := dial()
		if err != nil {
			return
		}
		defer out.Close()
		forwardConn(in, out)
	})
}

// forwardConn forwards what each connection receives to the other one, until the
// server closes out.
func forwardConn(in, out net.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() {
		io.Copy(out, in)
		out.(interface{ CloseWrite() error }).CloseWrite()
	})
	io.Copy(in, out)
	in.Close() // ends the copy in the other direction
	wg.Wait()
}
