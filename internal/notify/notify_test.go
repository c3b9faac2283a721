package notify

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/internal/socket/sockettest"
)

// listen creates a socket for the service manager, and returns a function that
// reads from it.
func listen(t *testing.T, name string) func() string {
	t.Helper()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return func() string {
		buf := make([]byte, 200)
		n, err := socket.Read(buf)
		if err != nil {
			t.Error(err)
		}
		return string(buf[:n])
	}
}

func TestStates(t *testing.T) {
	defer func(saved func() manager) { serviceManager = saved }(serviceManager)
	for _, name := range []string{filepath.Join(sockettest.Dir(t), "n"), "@schedrestd-notify-" + strconv.Itoa(os.Getpid())} {
		next := listen(t, name)
		serviceManager = func() manager { return manager{socket: name} }
		Ready("served: old")
		Reloading()
		Stopping()
		ready, reloading, stopping := next(), next(), next()
		usec, ok := strings.CutPrefix(reloading, "RELOADING=1\nMONOTONIC_USEC=")
		if n, err := strconv.ParseUint(usec, 10, 64); !ok || err != nil || n == 0 || ready != "READY=1\nSTATUS=served: old" || stopping != "STOPPING=1" {
			t.Errorf("%s: %q %q %q", name, ready, reloading, stopping)
		}
	}
	manager{socket: filepath.Join(sockettest.Dir(t), "nobody")}.send("READY=1") // no process listens; the call must not wait
}

// TestWatchdog checks that a process that works sends reports repeatedly. A
// process that is stuck must send none.
func TestWatchdog(t *testing.T) {
	name := filepath.Join(sockettest.Dir(t), "n")
	next := listen(t, name)
	m := manager{socket: name, watchdog: 10 * time.Millisecond}
	stuck, times := make(chan struct{}), 0
	go m.watch(func() {
		if times++; times == 4 {
			close(stuck)
			select {} // for as long as the test's process runs
		}
	})
	for range 3 {
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("%q", got)
		}
	}
	<-stuck
	m.send("nothing before this")
	if got := next(); got != "nothing before this" {
		t.Errorf("a stuck process sent %q", got)
	}
}

func TestRead(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		want manager
	}{
		{"no service manager", map[string]string{"WATCHDOG_USEC": "1000"}, manager{}},
		{"no watchdog", map[string]string{"NOTIFY_SOCKET": "/run/n"}, manager{socket: "/run/n"}},
		{"watchdog", map[string]string{"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "7"}, manager{"@n", time.Millisecond}},
		{"another process's watchdog", map[string]string{"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "8"}, manager{socket: "@n"}},
		{"no number", map[string]string{"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "1s"}, manager{socket: "@n"}},
		{"no path", map[string]string{"NOTIFY_SOCKET": "n"}, manager{}},
	}
	for _, tt := range tests {
		if got := readManager(func(name string) string { return tt.env[name] }, 7); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
