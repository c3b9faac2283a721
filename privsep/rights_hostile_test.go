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

// setLinger makes the last close of fd wait for an hour, unless the peer reads
// all written bytes earlier.
func setLinger(fd int) error {
	return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600})
}

// TestLingeringWorker checks that no other client has to wait when a worker
// without a sandbox exits and another process has to close the socket of that
// worker's client. This close would wait for an hour.
func TestLingeringWorker(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(sharedDir(t), "mark")
	if as := plainUser(t); as != nil {
		must(t, os.Chown(filepath.Dir(mark), int(as.Uid), int(as.Gid)))
	}
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"first lingers", mark}}, Workers: 1})
	c, err := net.Dial("tcp", g.addr)
	must(t, err)
	defer c.Close() // the client reads nothing, so the close lingers
	g.await("worker exited unexpectedly", nil)
	g.mustGet("/pid")
}
