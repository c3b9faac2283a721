package thread

import (
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnNewThread calls the function do on a new thread. The thread exits when do
// has returned. So do may change attributes of the thread, such as the
// namespace or the user, without affecting other goroutines.
func OnNewThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread exits
		if unix.Gettid() == unix.Getpid() {
			// This goroutine runs on the first thread of the process. The
			// function do must run on another thread, because the first thread
			// can't exit. Also, /proc shows the attributes of the first thread
			// as those of the process. While this goroutine is locked to the
			// first thread, the goroutine of the inner call runs on another
			// thread.
			defer runtime.UnlockOSThread()
			done <- OnNewThread(do)
			return
		}
		done <- do()
	}()
	return <-done
}

// RunAs calls the function do on a new thread with the effective ids uid and
// gid. It requires root. It does not use the functions of package syscall,
// because they would change the ids of all threads.
func RunAs(uid, gid uint32, do func() error) error {
	return OnNewThread(func() error {
		for _, set := range [][2]uintptr{{unix.SYS_SETRESGID, uintptr(gid)}, {unix.SYS_SETRESUID, uintptr(uid)}} {
			if _, _, e := unix.RawSyscall(set[0], ^uintptr(0), set[1], ^uintptr(0)); e != 0 {
				return e
			}
		}
		return do()
	})
}

// DialAs connects to a UNIX socket as another user. If the caller is not root,
// DialAs connects as the caller.
func DialAs(uid, gid uint32, path string) (conn net.Conn, err error) {
	if os.Geteuid() != 0 {
		return net.Dial("unix", path)
	}
	err = RunAs(uid, gid, func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), path)
		defer f.Close()
		// Unlike package net, this call waits until the listener's queue has
		// space.
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			return err
		}
		conn, err = net.FileConn(f)
		return err
	})
	return conn, err
}
