package fetcher

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/rpc/confserver"
	"schedrestd/rpc/serveruid"
)

// connectLimit limits the time for one connection.
const connectLimit = 2 * time.Second

// broker opens connections for the process. It reads only the index of an
// endpoint from it.
type broker struct {
	task confserver.Task
	log  *slog.Logger
}

// Answer is what a request for a connection gets. If Failure is nil, the
// connected socket comes with it.
type Answer struct {
	Failure *Failure
	Server  uint32 // uid of the process at the other end
	Known   bool   // that process is on this machine
}

// Failure is an error without its cause.
type Failure struct {
	Kind       errs.Kind
	Text, Hint string
	Classified bool // the error is an *errs.Error
}

func failureOf(err error) *Failure {
	_, ok := errors.AsType[*errs.Error](err)
	return &Failure{errs.KindOf(err), err.Error(), errs.HintOf(err), ok}
}

// Err returns the error.
func (f *Failure) Err() error {
	if !f.Classified {
		return errors.New(f.Text)
	}
	return &errs.Error{Kind: f.Kind, Message: f.Text, Hint: f.Hint}
}

// serve opens the connections that the process requests, one after the other,
// until the process exits or breaks the protocol. The process then gets no more
// connections.
func (b *broker) serve(ctx context.Context, channel *os.File) {
	raw, err := channel.SyscallConn()
	if err != nil {
		return
	}
	defer raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	for range maxConnections {
		var request [requestSize + 1]byte
		n, err := channel.Read(request[:])
		if err != nil || n != requestSize {
			return
		}
		i := int(binary.LittleEndian.Uint16(request[:]))
		if i >= len(b.task.Endpoints) {
			return
		}
		a, nc := b.open(ctx, i)
		err = send(raw, a, nc)
		if nc != nil {
			nc.Close()
		}
		if err != nil {
			return
		}
	}
}

// Lengths of messages on the channel, in bytes.
const (
	requestSize = 2 // a request is the index of an endpoint, in little endian order
	MaxAnswer   = 16 << 10
)

// open opens a connection to an endpoint, and finds out who serves it.
func (b *broker) open(ctx context.Context, endpoint int) (Answer, net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	nc, err := b.task.Dial(ctx, endpoint)
	if err != nil {
		b.log.Debug("endpoint can't be reached", "endpoint", b.task.Endpoints[endpoint].Address, "error", err)
		return Answer{Failure: failureOf(err)}, nil
	}
	uid, known, err := serveruid.Of(nc)
	if err != nil {
		nc.Close()
		return Answer{Failure: failureOf(err)}, nil
	}
	return Answer{Server: uid, Known: known}, nc
}

// send sends an answer, with the descriptor of nc if nc is not nil.
func send(raw syscall.RawConn, a Answer, nc net.Conn) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	var sendErr error
	attempt := func(oob []byte) {
		err := raw.Write(func(fd uintptr) bool {
			sendErr = unix.Sendmsg(int(fd), text, oob, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
			return sendErr != unix.EAGAIN
		})
		sendErr = errors.Join(err, sendErr)
	}
	if nc == nil {
		attempt(nil)
		return sendErr
	}
	connection, err := nc.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	err = connection.Control(func(fd uintptr) { attempt(unix.UnixRights(int(fd))) })
	return errors.Join(err, sendErr)
}
