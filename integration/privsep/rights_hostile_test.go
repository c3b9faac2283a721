package privsep

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// fillBuffer writes to fd until the socket's buffer is full.
func fillBuffer(fd int) error {
	err := unix.SetNonblock(fd, true)
	for err == nil {
		_, err = unix.Write(fd, make([]byte, 1<<16))
	}
	if err == unix.EAGAIN {
		return nil
	}
	return err
}

// setLinger makes the last close of fd wait until the peer has read all written
// bytes, but for at most an hour.
func setLinger(fd int) error {
	return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600})
}

// TestLingeringWorker checks that a worker without a sandbox can't make other
// clients wait. The worker sets its client's socket to linger, and leaves the
// last close of the socket to another process. This close would wait for an
// hour.
func TestLingeringWorker(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(sharedDir(t), "mark")
	if as := plainUser(t); as != nil {
		must(t, os.Chown(filepath.Dir(mark), int(as.Uid), int(as.Gid)))
	}
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"first sets SO_LINGER", mark}}, Workers: 1})
	c, err := net.Dial("tcp", g.addr)
	must(t, err)
	defer c.Close() // until then the client reads nothing, so the close in the gateway lingers
	g.await("worker exited unexpectedly", nil)
	g.mustGet("/pid")
}
