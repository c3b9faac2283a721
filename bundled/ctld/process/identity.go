// Package process identifies processes unambiguously, and finds all descendants
// of a process.
//
// The kernel reuses process ids. So a process id that was read from a file may
// now belong to another process, and root could signal that process by mistake.
// Therefore an Identity also contains the boot id and the process's start time.
// Signals are sent through a Handle (a pidfd), which always refers to the same
// process. Only a parent may signal a process by its id, and only before the
// parent has waited for the process.
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

// ErrGone is returned when the process of an Identity no longer exists.
var ErrGone = errors.New("process is gone")

// An Identity identifies one process permanently: no other process ever has the
// same Identity, not even after a reboot.
type Identity struct {
	BootID string `json:"boot"`  // the kernel's boot id
	PID    int    `json:"pid"`   // in the PID namespace of the reader
	Start  uint64 `json:"start"` // clock ticks from boot to the start of the process
}

// bootID returns the id of this boot of the machine. The id is a random UUID
// made by the kernel.
var bootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return string(bytes.TrimSpace(b)), nil
})

// Self returns the identity of the calling process.
func Self() (Identity, error) { return Of(os.Getpid()) }

// Of returns the identity of the process that now has the id pid. The caller
// must make sure that the kernel does not reuse the id during the call. The
// kernel can't reuse the caller's own id, or the id of a child for which the
// caller has not waited.
func Of(pid int) (Identity, error) {
	boot, err := bootID()
	if err != nil {
		return Identity{}, err
	}
	st, err := ReadStat(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{BootID: boot, PID: pid, Start: st.Start}, nil
}

// String formats the identity for logs.
func (id Identity) String() string {
	boot, _, _ := strings.Cut(id.BootID, "-")
	return fmt.Sprintf("%d (started %d, boot %s)", id.PID, id.Start, boot)
}

// Open returns a Handle for the process that id identifies. It returns ErrGone
// in three cases: the process has exited and its parent has waited for it,
// another process now has the same id, or the machine has been rebooted.
func (id Identity) Open() (*Handle, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	if id.BootID != boot {
		return nil, ErrGone
	}
	fd, err := unix.PidfdOpen(id.PID, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("pidfd of process %d: %w", id.PID, err)
	}
	// Check the start time only now that the pidfd is open. If the start time
	// matches, the pidfd refers to the right process.
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

// A Handle refers to one process. It still refers to that process after the
// process has exited. It becomes invalid when it is closed.
type Handle struct{ file *os.File }

// NewHandle returns a Handle for pidfd. The Handle takes ownership of pidfd.
func NewHandle(pidfd int) *Handle {
	unix.SetNonblock(pidfd, true) // required by the runtime's poller
	return &Handle{file: os.NewFile(uintptr(pidfd), "pidfd")}
}

// Signal sends sig to the process to which h refers, and never to another
// process. It returns ErrGone if the process has exited and its parent has
// waited for it.
func (h *Handle) Signal(sig syscall.Signal) error {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	var signalErr error
	if err := conn.Control(func(fd uintptr) { signalErr = unix.PidfdSendSignal(int(fd), sig, nil, 0) }); err != nil {
		return err
	}
	if errors.Is(signalErr, unix.ESRCH) {
		return ErrGone
	}
	return signalErr
}

// Wait waits until the process has exited, and then returns nil. If ctx is done
// first, Wait returns ctx's error. Wait blocks no thread, because the runtime
// polls the pidfd. Wait must not be called concurrently on the same Handle.
func (h *Handle) Wait(ctx context.Context) error {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	for {
		h.file.SetReadDeadline(time.Time{})
		stop := context.AfterFunc(ctx, func() { h.file.SetReadDeadline(time.Unix(1, 0)) })
		err := conn.Read(hasExited)
		stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) { // an expired deadline is left over from an earlier call
			return err
		}
	}
}

// hasExited reports whether the process to which the pidfd fd refers has
// exited. The kernel makes a pidfd readable when its process exits.
func hasExited(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, _ := unix.Poll(p, 0)
	return n > 0
}

// Close closes the pidfd.
func (h *Handle) Close() error { return h.file.Close() }
