// Package confined is the process that package fetcher starts. It is part of the
// worker's program.
package confined

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"schedrestd/conf"
	"schedrestd/gateway/fetcher"
	"schedrestd/rpc/confserver"
	"schedrestd/rpc/confserver/request"
	"schedrestd/rpc/tlsconn"
	"schedrestd/security"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// Requested reports whether the program was started with args in order to fetch
// the configuration.
func Requested(args []string) bool { return len(args) > 0 && args[0] == fetcher.Name }

// Rename gives the process its name. Call it from an init function.
func Rename() { self.Rename("schedrestd-fetc") } // the kernel has room for 15 bytes

const (
	channelFD = sandbox.Channel // on which connections are requested; the sandbox permits recvmsg(2) only there
	maxFiles  = 64
	maxData   = 256 << 20 // bytes of memory; an answer has at most 16 MiB
)

// Main runs the process and returns its exit status.
func Main() int { return Run(fetch) }

// Run confines the process, calls act, and writes the result. Only tests call it
// with another function than fetch.
func Run(act func(fetcher.Task) (conf.Sent, error)) int {
	var t fetcher.Task
	err := json.NewDecoder(os.Stdin).Decode(&t)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: this program is started by schedrestd, not by hand")
		return 2
	}
	os.Stdin.Close()
	sent, err := conf.Sent{}, confine(t)
	if err == nil {
		sent, err = act(t)
	}
	if _, err := os.Stdout.Write(fetcher.EncodeResult(sent, err)); err != nil {
		return 1
	}
	return 0
}

// confine confines the process. Its sandbox is that of a worker that receives all
// its connections.
func confine(t fetcher.Task) error {
	if security.Sandboxed {
		if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: maxData, Max: maxData}); err != nil {
			return fmt.Errorf("limit the memory to %d bytes: %w", maxData, err)
		}
	}
	if err := self.Confine(maxFiles, false); err != nil {
		return err
	}
	_, err := sandbox.Close(sandbox.Options{Kind: sandbox.Worker, Audit: t.Audit}, t.Require)
	return err
}

// fetch fetches the configuration.
func fetch(t fetcher.Task) (conf.Sent, error) {
	ctx, cancel := context.WithTimeout(context.Background(), t.Limit)
	defer cancel()
	var secure *tlsconn.Client
	if t.CAFile != "" {
		var err error
		if secure, err = tlsconn.ReadClient(t.CAFile, t.CA, t.CheckNames); err != nil {
			return conf.Sent{}, err
		}
	}
	d := dialer{task: &t}
	return request.Send(ctx, &t.Task, secure, slog.New(slog.DiscardHandler), d.dial)
}

// dialer gets connections from the process that started this one.
type dialer struct {
	task *fetcher.Task
	mu   sync.Mutex // held from a request to its answer
}

func (d *dialer) dial(_ context.Context, endpoint int) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	index := binary.LittleEndian.AppendUint16(nil, uint16(endpoint))
	if _, err := unix.Write(channelFD, index); err != nil {
		return nil, fmt.Errorf("request a connection: %w", err)
	}
	a, fd, err := receive()
	if err != nil {
		return nil, fmt.Errorf("receive a connection: %w", err)
	}
	if a.Failure != nil {
		return nil, a.Failure.Err()
	}
	return &connection{os.NewFile(uintptr(fd), "connection"), d.task.Endpoints[endpoint], a}, nil
}

// receive receives an answer and, if it is positive, the connection.
func receive() (a fetcher.Answer, fd int, err error) {
	text, oob := make([]byte, fetcher.MaxAnswer), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := unix.Recvmsg(channelFD, text, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return a, -1, err
	}
	if n == 0 {
		return a, -1, io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(text[:n], &a); err != nil || a.Failure != nil {
		return a, -1, err
	}
	list, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(list) != 1 {
		return a, -1, errors.New("the answer has no connection")
	}
	fds, err := unix.ParseUnixRights(&list[0])
	if err != nil || len(fds) != 1 {
		return a, -1, errors.New("the answer has no connection")
	}
	return a, fds[0], nil
}

// connection is a connection that another process has opened.
type connection struct {
	*os.File
	to     confserver.Endpoint
	answer fetcher.Answer
}

// Server implements peer.BrokeredConn.
func (c *connection) Server() (uid uint32, known bool) { return c.answer.Server, c.answer.Known }

// LocalAddr returns the address of the server, because the local address does not
// matter.
func (c *connection) LocalAddr() net.Addr { return c.RemoteAddr() }

// RemoteAddr returns the address of the server.
func (c *connection) RemoteAddr() net.Addr { return serverAddr{c.to.Network, c.to.Address} }

type serverAddr struct{ network, address string }

// Network returns "tcp" or "unix".
func (a serverAddr) Network() string { return a.network }

// String returns the address or the path.
func (a serverAddr) String() string { return a.address }
