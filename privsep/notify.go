package privsep

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// notifySocket is where the service manager hears how the service is (sd_notify(3)); "" when nobody
// listens. It is read once and taken out of the environment: no child speaks for this process.
var notifySocket = sync.OnceValue(func() string {
	path := os.Getenv("NOTIFY_SOCKET")
	_ = os.Unsetenv("NOTIFY_SOCKET")
	if path == "" || path[0] != '/' && path[0] != '@' {
		return ""
	}
	return path
})

// notifyReady tells the service manager that connections are served.
func notifyReady() { notify("READY=1") }

// notifyReloading tells it that the configuration is being read anew; notifyReady ends that. The time
// lets it tell this reload from an earlier one.
func notifyReloading() {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	notify(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000))
}

// notifyStopping tells it that the end has begun.
func notifyStopping() { notify("STOPPING=1") }

// notify sends one message and never waits: a service manager that does not listen is no reason not
// to serve.
func notify(state string) {
	path := notifySocket()
	if path == "" {
		return
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	// A name that begins with @ is an abstract one, here and in package unix.
	_ = unix.Sendto(fd, []byte(state), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, &unix.SockaddrUnix{Name: path})
}
