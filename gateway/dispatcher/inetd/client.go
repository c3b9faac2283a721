package inetd

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// Client is the client of a gateway that inetd started. It holds the standard
// input and output that the parent passed.
type Client struct {
	ipc.Connection
	In, Out int
}

// pipe returns the two ends of a pipe. The end for reading is nonblocking and
// polled by the Go runtime. The end for writing is blocking.
func pipe() (*os.File, int, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, errs.Wrap(err, errs.Internal, "create a pipe")
	}
	_ = unix.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "answers"), fds[1], nil
}

// output returns the descriptor fd for the worker's answers. Unless standard
// output is a regular file, fd is standard output, and relayFD is -1.
//
// The worker can't write to a regular file. If standard output is a regular
// file, fd is the writing end of a pipe, and a goroutine copies from the pipe
// to the file. When the copy ends, the goroutine sends the error, or nil, to
// copyResult. In this case, relayFD is the same descriptor as fd. The caller
// must close relayFD when the worker has its own copy.
func (c *Client) output() (fd, relayFD int, copyResult chan error, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(c.Out, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return c.Out, -1, nil, err
	}
	from, to, err := pipe()
	if err != nil {
		return -1, -1, nil, err
	}
	copyResult = make(chan error, 1)
	file := os.NewFile(uintptr(c.Out), "standard output")
	go func() {
		_, err := io.Copy(file, from)
		from.Close() // so that the worker's next write fails
		copyResult <- err
	}()
	return to, to, copyResult, nil
}

// pollState reports whether the client has stopped sending, and whether it has
// closed the connection. If standard input is a pipe or a terminal and not a
// socket, both results are false, because such a client occupies nothing that
// others need.
func (c *Client) pollState() (inputEnded, closed bool) {
	if c.Network == ipc.Stdio {
		return false, false
	}
	fds := []unix.PollFd{{Fd: int32(c.In), Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(fds, 0); n != 1 || err != nil {
		return false, false
	}
	closed = fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	return closed || fds[0].Revents&unix.POLLRDHUP != 0, closed
}
