package privsep

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// fill writes to fd until it takes no more.
func fill(fd int) error {
	err := unix.SetNonblock(fd, true)
	for err == nil {
		_, err = unix.Write(fd, make([]byte, 1<<16))
	}
	if err == unix.EAGAIN {
		return nil
	}
	return err
}

// sleepy makes the last close of fd wait for an hour, or for a process that reads what was written.
func sleepy(fd int) error {
	return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600})
}

// TestLingeringWorker: a worker outside of its sandbox that has the parent close last what lingers holds up nobody.
func TestLingeringWorker(t *testing.T) {
	mark := filepath.Join(sharedDir(t), "mark")
	if as := plain(t); as != nil {
		must(t, os.Chown(filepath.Dir(mark), int(as.Uid), int(as.Gid)))
	}
	g := serve(t, plain(t), Config{Argv: argv{ipc.Worker: {"first lingers", mark}}, Workers: 1})
	c, err := net.Dial("tcp", g.addr)
	must(t, err)
	defer c.Close() // it reads nothing
	g.await("worker died", nil)
	g.mustGet("/pid")
}
