package notify

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	firstPassedFD = 3   // the descriptor of the first socket that a service manager passes
	maxPassed     = 256 // maximum number of passed sockets
)

// Sockets returns the sockets that the service manager passed to this process
// (sd_listen_fds(3)), as files with their names. It must be called once, before
// any other process is started. It removes the LISTEN_* variables from the
// environment, so that no child uses the descriptors.
func Sockets() ([]*os.File, error) {
	files, err := passedSockets(os.Getenv, os.Getpid())
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"} {
		_ = os.Unsetenv(name)
	}
	return files, err
}

// passedSockets returns the sockets that, according to the environment, were
// passed to the process with the id pid.
func passedSockets(env func(string) string, pid int) ([]*os.File, error) {
	if env("LISTEN_FDS") == "" || env("LISTEN_PID") != strconv.Itoa(pid) {
		return nil, nil // no sockets were passed, or they are meant for another process
	}
	n, err := strconv.Atoi(env("LISTEN_FDS"))
	if err != nil || n < 0 || n > maxPassed {
		return nil, fmt.Errorf("environment: LISTEN_FDS=%s is not a number up to %d", env("LISTEN_FDS"), maxPassed)
	}
	names := append(strings.Split(env("LISTEN_FDNAMES"), ":"), make([]string, n)...) // some may have no name
	var files []*os.File
	for i := range n {
		unix.CloseOnExec(firstPassedFD + i)
		files = append(files, os.NewFile(uintptr(firstPassedFD+i), names[i]))
	}
	return files, nil
}

// IsListening reports whether fd is a listening stream socket.
func IsListening(fd int) bool {
	listens, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	kind, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return listens == 1 && kind == unix.SOCK_STREAM
}
