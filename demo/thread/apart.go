package thread

import (
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Apart calls do on a thread of its own, which ends with it: what do makes of its thread (another namespace, another
// user) is nobody's afterwards.
func Apart(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if unix.Gettid() == unix.Getpid() {
			// The process's first thread can't end, and by it /proc says what the process is. While it is held, the next is another.
			defer runtime.UnlockOSThread()
			done <- Apart(do)
			return
		}
		done <- do()
	}()
	return <-done
}

// As calls do on a thread of its own that is these in the eyes of the kernel, which looks at threads: package syscall
// would change them all. It takes root.
func As(uid, gid uint32, do func() error) error {
	return Apart(func() error {
		for _, set := range [][2]uintptr{{unix.SYS_SETRESGID, uintptr(gid)}, {unix.SYS_SETRESUID, uintptr(uid)}} {
			if _, _, e := unix.RawSyscall(set[0], ^uintptr(0), set[1], ^uintptr(0)); e != 0 {
				return e
			}
		}
		return do()
	})
}

// DialAs connects to a UNIX socket as another user, when root calls it.
func DialAs(uid, gid uint32, path string) (conn net.Conn, err error) {
	if os.Geteuid() != 0 {
		return net.Dial("unix", path)
	}
	err = As(uid, gid, func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), path)
		defer f.Close()
		// It waits for a place in the listener's queue, as package net does not.
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			return err
		}
		conn, err = net.FileConn(f)
		return err
	})
	return conn, err
}
