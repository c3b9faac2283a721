// Package process names processes so that the name can't come to mean another
// one, and finds all that descend from one.
//
// A process number alone is reused by the kernel: a signal sent to a number read from a
// file may hit a stranger, with root's rights. An Identity adds the boot and the
// start time, and a Handle (a pidfd) keeps hold of the process itself, so that
// nothing is ever signalled by number.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrGone says that the process named by an Identity is no longer there.
var ErrGone = errors.New("process is gone")

// Identity names one process for ever: no other process, now or after a reboot,
// has the same.
type Identity struct {
	Boot  string `json:"boot"`  // the kernel's boot id
	PID   int    `json:"pid"`   // in the PID namespace of the reader
	Start uint64 `json:"start"` // clock ticks from boot to the start of the process
}

// Boot is the id of this boot of the machine (a random UUID made by the kernel).
var Boot = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return string(bytes.TrimSpace(b)), nil
})

// Self is the identity of the calling process.
func Self() (Identity, error) { return Of(os.Getpid()) }

// Of is the identity of the process that has number pid now. It is meant for
// a caller who knows that the number can't change hands: for himself, or for a child not yet waited for.
func Of(pid int) (Identity, error) {
	boot, err := Boot()
	if err != nil {
		return Identity{}, err
	}
	st, err := ReadStat(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Boot: boot, PID: pid, Start: st.Start}, nil
}

// String is for logs.
func (id Identity) String() string {
	boot, _, _ := strings.Cut(id.Boot, "-")
	return fmt.Sprintf("%d (started %d, boot %s)", id.PID, id.Start, boot)
}

// Open takes hold of the process. The error is ErrGone when it has ended and been
// waited for, when its number belongs to another one now, or when the machine was
// booted since.
func (id Identity) Open() (*Handle, error) {
	boot, err := Boot()
	if err != nil {
		return nil, err
	}
	if id.Boot != boot {
		return nil, ErrGone
	}
	fd, err := unix.PidfdOpen(id.PID, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("pidfd of process %d: %w", id.PID, err)
	}
	// The number is looked at again only now, while the pidfd is held: whoever has
	// it at this moment with the right start time is whom the pidfd holds.
	h := &Handle{file: os.NewFile(uintptr(fd), "pidfd")}
	st, err := ReadStat(id.PID)
	if err == nil && st.Start != id.Start {
		err = ErrGone
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// Handle holds one process, alive or dead, until Close.
type Handle struct{ file *os.File }

// Hold makes a Handle of a pidfd, which it takes over.
func Hold(pidfd int) *Handle {
	unix.SetNonblock(pidfd, true) // else it would not go into the runtime's poller
	return &Handle{file: os.NewFile(uintptr(pidfd), "pidfd")}
}

// Signal sends sig to the process that is held and to no other. It returns ErrGone
// when that process has ended.
func (h *Handle) Signal(sig syscall.Signal) error {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	if err := conn.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), sig, nil, 0) }); err != nil {
		return err
	}
	if errors.Is(sent, unix.ESRCH) {
		return ErrGone
	}
	return sent
}

// Wait returns nil when the process has ended, or ctx's error. It costs no thread: the
// pidfd sits in the runtime's poller. One caller at a time.
func (h *Handle) Wait(ctx context.Context) error {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	for {
		h.file.SetReadDeadline(time.Time{})
		stop := context.AfterFunc(ctx, func() { h.file.SetReadDeadline(time.Unix(1, 0)) })
		err := conn.Read(ended)
		stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) { // else left over from an earlier call
			return err
		}
	}
}

// ended tells whether the process behind a pidfd has: it can then be read from.
func ended(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, _ := unix.Poll(p, 0)
	return n > 0
}

// Close lets go of the process.
func (h *Handle) Close() error { return h.file.Close() }
