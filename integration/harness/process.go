package harness

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"schedrestd/bundled/ctld/process"
	"strings"
	"testing"
)

// Workers returns the process ids of the lab's gateway's workers.
func (l *Lab) Workers() []int {
	l.T.Helper()
	return WorkersOf(l.T, l.Daemons["schedrestd"].PID())
}

// WorkersOf returns the process ids of a gateway's workers. pid is the process
// id of the gateway's parent.
func WorkersOf(t *testing.T, pid int) []int {
	t.Helper()
	return DescendantsNamed(t, pid, "schedrestd-work") // the kernel keeps 15 characters of the name
}

// Dispatcher returns the process id of the lab's gateway's dispatcher.
func (l *Lab) Dispatcher() int {
	l.T.Helper()
	list := DescendantsNamed(l.T, l.Daemons["schedrestd"].PID(), "schedrestd-disp")
	if len(list) != 1 {
		l.T.Fatalf("the gateway has %d dispatchers", len(list))
	}
	return list[0]
}

// DescendantsNamed returns the running descendants of process pid whose names
// begin with name.
func DescendantsNamed(t *testing.T, pid int, name string) (pids []int) {
	t.Helper()
	list, err := process.Descendants(pid)
	Must(t, err)
	for _, st := range list {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", st.PID))
		if err == nil && st.State != 'Z' && strings.HasPrefix(string(comm), name) {
			pids = append(pids, st.PID)
		}
	}
	return pids
}

// DescendantNamed returns the first process that DescendantsNamed would return,
// or 0 if there is none.
func DescendantNamed(t *testing.T, pid int, name string) int {
	t.Helper()
	if pids := DescendantsNamed(t, pid, name); len(pids) > 0 {
		return pids[0]
	}
	return 0
}

// StatusOf returns the fields of /proc/PID/status.
func StatusOf(t *testing.T, pid int) map[string]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	Must(t, err)
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}

// HoldConn opens a connection, sends one request, reads the answer and keeps
// the connection open.
func (l *Lab) HoldConn() net.Conn {
	l.T.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(l.URL, "http://"))
	Must(l.T, err)
	fmt.Fprintf(c, "GET /sched/v0.0.43/ping HTTP/1.1\r\nHost: lab\r\nX-SCHED-USER-TOKEN: %s\r\n\r\n", l.OwnToken)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	Must(l.T, err)
	if resp.StatusCode != 200 {
		l.T.Fatalf("status %s", resp.Status)
	}
	return c
}

// Descriptors returns the number of open descriptors of a process. It returns 0
// if this process may not list them. For example, an ordinary user may not list
// those of the gateway's parent.
func Descriptors(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if os.Geteuid() != 0 && errors.Is(err, fs.ErrPermission) {
		return 0
	}
	Must(t, err)
	return len(list)
}
