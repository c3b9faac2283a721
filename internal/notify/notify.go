// Package notify reports the state of this process to the service manager that
// started it (sd_notify(3)). If there is no service manager, the package does
// nothing. The package never waits, because a service manager that does not
// read must not block the process.
package notify

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A manager holds the settings that the service manager has passed to this
// process.
type manager struct {
	socket   string        // "": there is no service manager
	watchdog time.Duration // the service manager kills a process that sends no report for this long; 0 means never
}

// serviceManager reads the service manager's environment variables once. It
// removes them from the environment, so that no child sends reports for this
// process.
var serviceManager = sync.OnceValue(func() manager {
	m := readManager(os.Getenv, os.Getpid())
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		_ = os.Unsetenv(name)
	}
	return m
})

func readManager(getenv func(string) string, pid int) (m manager) {
	path := getenv("NOTIFY_SOCKET")
	if path == "" || path[0] != '/' && path[0] != '@' {
		return m
	}
	m.socket = path
	usec, err := strconv.ParseUint(getenv("WATCHDOG_USEC"), 10, 53)
	if watchdogPID := getenv("WATCHDOG_PID"); err == nil && (watchdogPID == "" || watchdogPID == strconv.Itoa(pid)) {
		m.watchdog = time.Duration(usec) * time.Microsecond
	}
	return m
}

// ClearEnv removes the service manager's variables from the environment.
func ClearEnv() { serviceManager() }

// Ready reports that the service is available. Users of systemctl see the
// status, which must be one line and at most about 4000 bytes; "" removes an
// earlier one.
func Ready(status string) { serviceManager().send("READY=1\nSTATUS=" + status) }

// Reloading reports that the process is reading its configuration again. A
// later call to Ready reports that the reload is complete. The message contains
// the time, so that the service manager can distinguish this reload from an
// earlier one.
func Reloading() {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	serviceManager().send(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000))
}

// Stopping reports that shutdown has begun.
func Stopping() { serviceManager().send("STOPPING=1") }

// Watchdog sends reports for as long as this process runs, because the service
// manager kills a process that sends none (WatchdogSec=). Before each report it
// calls the function alive, which must return only if the process still works.
func Watchdog(alive func()) { serviceManager().watch(alive) }

func (m manager) watch(alive func()) {
	for m.watchdog > 0 {
		time.Sleep(max(m.watchdog/3, time.Millisecond))
		alive()
		m.send("WATCHDOG=1")
	}
}

func (m manager) send(state string) {
	if m.socket == "" {
		return
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	// A name that begins with @ denotes an abstract socket, both in
	// NOTIFY_SOCKET and in package unix.
	_ = unix.Sendto(fd, []byte(state), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, &unix.SockaddrUnix{Name: m.socket})
}
