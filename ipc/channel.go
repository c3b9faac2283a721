package ipc

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrFull reports that the channel has no room because the peer does not read
// fast enough.
var ErrFull = errors.New("the channel is full")

// Channel is one end of a channel. It is safe for concurrent use.
type Channel struct {
	self, peer Role
	file       *os.File
	raw        syscall.RawConn
	noFDs      bool // no descriptors are received

	mu    sync.Mutex // guards phase
	phase Phase

	recvMu sync.Mutex // guards buf and oob, which every Receive reuses
	buf    [MaxMessage + 1]byte
	oob    []byte
}

// Pair makes a channel between two processes, which have the roles self and
// peer. The role Managers stands for the parent and the dispatcher, if they
// share an end. Pair returns self's end, and a close-on-exec descriptor for
// peer's end. The caller must pass this descriptor to the peer and then close
// it. A caller that keeps it open does not notice when the peer exits.
func Pair(self, peer Role) (*Channel, int, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("make a channel: %w", err)
	}
	c, err := Open(fds[0], self, peer)
	if err != nil {
		closeAll(fds[1:])
		return nil, -1, err
	}
	return c, fds[1], nil
}

// Open returns the end of a channel that the descriptor fd refers to, and takes
// ownership of fd.
func Open(fd int, self, peer Role) (*Channel, error) {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return nil, fmt.Errorf("descriptor %d is not a channel", fd)
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("open a channel: %w", err)
	}
	file := os.NewFile(uintptr(fd), peer.String())
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("open a channel: %w", err)
	}
	// A worker's sandbox permits recvmsg(2) only on the channel to the parent.
	noFDs := self == Worker && !peer.Has(Parent)
	return &Channel{self: self, peer: peer, file: file, raw: raw, noFDs: noFDs, oob: make([]byte, controlSize)}, nil
}

// Resume puts an end that was just opened into the given phase, because another
// process has already used it. For example, the parent sends a process its setup
// and then passes its end to the dispatcher, which resumes it.
func (c *Channel) Resume(phase Phase) { c.phase = phase }

// WithFD calls fn with the descriptor of this end, so that fn can pass it to
// another process.
func (c *Channel) WithFD(fn func(fd int) error) error {
	var fnErr error
	err := c.raw.Control(func(fd uintptr) { fnErr = fn(int(fd)) })
	return cmp.Or(err, fnErr)
}

// Phase returns the phase of this end.
func (c *Channel) Phase() Phase {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase
}

// Shutdown shuts down the channel, even if other processes have descriptors of
// this end, and then closes this end.
func (c *Channel) Shutdown() error {
	_ = c.WithFD(func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RDWR) })
	return c.Close()
}

// Close closes this end. A Receive that is waiting returns io.EOF.
func (c *Channel) Close() error { return c.file.Close() }

// Send sends m with the descriptors that m's row of the protocol table
// requires. It does not close them. While the channel is full, Send waits.
func (c *Channel) Send(m Message, fds ...int) error { return c.send(m, fds, true) }

// TrySend is like Send but returns ErrFull instead of waiting.
func (c *Channel) TrySend(m Message, fds ...int) error { return c.send(m, fds, false) }

func (c *Channel) send(m Message, fds []int, wait bool) error {
	frame, err := Encode(m)
	if err != nil {
		return violation(c.self, KindOf(m), "%w", err)
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	// The lock is held during the check and the system call, so that no other
	// sender can change the phase in between. It is not held while a sender
	// waits for room, because Receive needs the lock, too.
	var sendErr error
	attempt := func(fd uintptr) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		var next Phase
		if _, next, sendErr = permit(KindOf(m), c.self, c.peer, c.phase, len(frame)-1, len(fds)); sendErr != nil {
			return true
		}
		sendErr = sendPacket(int(fd), frame, oob)
		// If the peer has exited, the phase changes as if the message had been
		// sent. Without this change, the next message would fail because it is
		// out of order, and not because the peer has exited.
		if sendErr == nil || sendErr == unix.EPIPE {
			c.phase = next
		}
		return sendErr != unix.EAGAIN
	}
	if wait {
		err = c.raw.Write(attempt)
	} else { // raw.Write would block while another sender waits
		err = c.raw.Control(func(fd uintptr) { attempt(fd) })
	}
	switch {
	case err != nil:
		return fmt.Errorf("send %s: %w", KindOf(m), os.ErrClosed) // this end is closed
	case sendErr == unix.EAGAIN:
		return ErrFull
	case sendErr != nil:
		return fmt.Errorf("send %s: %w", KindOf(m), sendErr)
	}
	return nil
}

// IgnoreClosed returns nil if err, which Send returned, only means that the
// channel is closed. Otherwise it returns err. The caller can ignore a closed
// channel, because the goroutine that calls Receive handles it.
func IgnoreClosed(err error) error {
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, os.ErrClosed) { // reset: the peer had not read all
		return nil
	}
	return err
}

// sendPacket sends one packet. It uses sendmsg(2) only to pass descriptors,
// because the sandboxes of workers and of most services forbid sendmsg.
func sendPacket(fd int, frame, oob []byte) (err error) {
	for {
		if len(oob) == 0 {
			_, err = unix.Write(fd, frame)
		} else {
			err = unix.Sendmsg(fd, frame, oob, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		}
		if err != unix.EINTR {
			return err
		}
	}
}

// Received is a message with the descriptors that its row of the protocol table
// requires. The caller of Receive must close them.
type Received struct {
	Message
	FDs []int
}

// Receive waits for the next message. It returns io.EOF if the peer has closed
// its end, and a *Violation if the peer has broken the protocol. After a
// violation, the descriptors that came with the message are already closed.
func (c *Channel) Receive() (Received, error) {
	c.recvMu.Lock()
	defer c.recvMu.Unlock()
	var (
		n, oobn, flags int
		recvErr        error
	)
	err := c.raw.Read(func(fd uintptr) bool {
		for {
			if c.noFDs {
				n, recvErr = unix.Read(int(fd), c.buf[:])
			} else {
				n, oobn, flags, _, recvErr = unix.Recvmsg(int(fd), c.buf[:], c.oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
			}
			// When a peer exits with unread messages, the first read returns
			// ECONNRESET. Later reads return what the peer had sent.
			if recvErr != unix.EINTR && recvErr != unix.ECONNRESET {
				return recvErr != unix.EAGAIN
			}
		}
	})
	switch {
	case err != nil:
		return Received{}, io.EOF // this end is closed
	case recvErr != nil:
		return Received{}, fmt.Errorf("receive from the %s: %w", c.peer, recvErr)
	}
	return c.decodePacket(c.buf[:n], c.oob[:oobn], flags)
}

// decodePacket decodes one packet. If the packet breaks the protocol, it
// returns a *Violation.
func (c *Channel) decodePacket(frame, oob []byte, flags int) (r Received, err error) {
	fds, parseErr := parseFDs(oob)
	defer func() {
		if err != nil {
			closeAll(fds)
		}
	}()
	switch {
	case flags&unix.MSG_CTRUNC != 0:
		return r, violation(c.peer, 0, "had its control message cut off")
	case parseErr != nil:
		return r, violation(c.peer, 0, "%w", parseErr)
	case len(frame) == 0 && len(fds) == 0:
		return r, io.EOF // the end of the channel, or an empty packet, which looks the same
	case len(frame) == 0:
		return r, violation(c.peer, 0, "has no kind")
	case flags&unix.MSG_TRUNC != 0 || len(frame) > MaxMessage:
		return r, violation(c.peer, 0, "is longer than %d bytes", MaxMessage)
	}
	kind := Kind(frame[0])
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peer.Has(Parent) && c.phase == Initial {
		first := Walker{buf: frame[1:], reading: true}
		if first.version(); first.err != nil {
			return r, violation(c.peer, kind, "%w", first.err)
		}
	}
	row, next, err := permit(kind, c.peer, c.self, c.phase, len(frame)-1, len(fds))
	if err != nil {
		return r, err
	}
	m := row.New()
	if err := Unmarshal(frame[1:], m); err != nil {
		return r, violation(c.peer, kind, "%w", err)
	}
	c.phase = next
	return Received{Message: m, FDs: fds}, nil
}
