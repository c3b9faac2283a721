package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/ctld/process"
	"schedrestd/bundled/demo/site"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// lab is a site that all benchmarks use.
type lab struct {
	*site.Site
	bin     string // directory of the programs
	token   string
	daemons []*site.Daemon // accounting daemon, controller, gateway, single process
}

var theLab lab

// open starts the site on the first call.
func (l *lab) open(b *testing.B) *lab {
	b.Helper()
	if l.Site != nil {
		return l
	}
	var err error
	l.bin, err = filepath.Abs("../bin")
	must(b, err)
	dir, err := os.MkdirTemp("", "bench-")
	must(b, err)
	must(b, os.Chmod(dir, 0o711))
	l.Site, err = site.New(dir)
	must(b, err)
	must(b, os.Chmod(filepath.Join(dir, "run"), 0o755)) // so that gateways that run as other users can connect to the controller's socket
	must(b, l.Configure())
	ports, err := site.FreePorts(2)
	must(b, err)
	l.up(b, l.Scheddbd(l.bin))
	l.up(b, l.Schedctld(l.bin))
	l.up(b, l.Schedrestd(l.bin, fmt.Sprintf("127.0.0.1:%d", ports[0])))
	l.up(b, l.singlePart(b, fmt.Sprintf("127.0.0.1:%d", ports[1])))
	l.token, err = l.Token(context.Background(), "", time.Hour)
	must(b, err)
	return l
}

func (l *lab) up(b *testing.B, p site.Part) {
	b.Helper()
	l.daemons = append(l.daemons, l.start(b, p))
}

// start starts a daemon and waits until it answers.
func (l *lab) start(b *testing.B, p site.Part) *site.Daemon {
	b.Helper()
	d, err := site.Start(p)
	must(b, err)
	if err := d.WaitReady(context.Background()); err != nil {
		b.Fatalf("%v\n%s", err, strings.Join(d.LastLines(20), "\n"))
	}
	return d
}

// close stops the site. It also ends the running jobs, which would otherwise
// outlive the controller.
func (l *lab) close() {
	var jobs []process.Stat
	if len(l.daemons) > 1 {
		jobs, _ = process.Descendants(l.daemons[1].PID())
	}
	for i := len(l.daemons) - 1; i >= 0; i-- {
		l.daemons[i].Stop()
	}
	process.SignalAll(jobs, syscall.SIGTERM)
	for range 200 { // retry, because the job's step still has to write the outcome
		if l.Site == nil || os.RemoveAll(l.Dir) == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// singlePart returns a daemon with only one process: this test program, which
// runs serveSingle.
func (l *lab) singlePart(b *testing.B, listen string) site.Part {
	b.Helper()
	self, err := os.Executable()
	must(b, err)
	text, err := json.Marshal(singleConfig{Listen: listen, Setup: work.Setup{Setup: ipc.Setup{JWT: true, Requests: 124},
		Cluster:     "demo",
		Controllers: []work.Address{{Name: l.Node, Network: "tcp", Address: fmt.Sprintf("127.0.0.1:%d", l.Controller)}},
		Accounting:  []work.Address{{Name: l.Node, Network: "tcp", Address: fmt.Sprintf("127.0.0.1:%d", l.Accounting)}},
		AuthSocket:  l.Socket(),
		Names:       work.NamesSched,
		Parsers:     []work.Parser{{Version: 43}},
		Content:     work.ContentController | work.ContentAccounting,
		Limits: work.Limits{ReadHeader: 10 * time.Second, ReadBody: 20 * time.Second, Idle: time.Minute, Stall: time.Minute,
			Call: 10 * time.Second, Accounting: 900 * time.Second, Connect: 2 * time.Second, Drain: time.Minute, Header: 32 << 10, Body: 50 << 20, Answers: 256 << 20},
	}})
	must(b, err)
	p := l.Schedrestd("", listen) // for its Answers function
	p.Program = site.Program{Name: "one process", Path: self, Env: []string{singleEnv + "=" + string(text)}, Log: l.Log("single")}
	return p
}

// server is one of the two servers that are compared.
type server struct {
	name   string
	dial   dialer
	daemon *site.Daemon
	pids   []int // its own process first

	hasChangingChildren bool // its children change during a measurement
}

func (l *lab) gateway(b *testing.B) server { return l.daemonServer(b, 2) }
func (l *lab) single(b *testing.B) server  { return l.daemonServer(b, 3) }

func (l *lab) daemonServer(b *testing.B, i int) server {
	b.Helper()
	d := l.daemons[i]
	return newServer(b, d, tcpDialer(strings.TrimPrefix(d.Address, "http://")))
}

// newServer returns a server that consists of the daemon d and its current
// descendants.
func newServer(b *testing.B, d *site.Daemon, dial dialer) server {
	b.Helper()
	s := server{name: d.Name, dial: dial, daemon: d, pids: []int{d.PID()}}
	list, err := process.Descendants(d.PID())
	must(b, err)
	for _, st := range list {
		s.pids = append(s.pids, st.PID)
	}
	return s
}

// fail ends the benchmark. It prints err and the last warnings and errors in
// the server's log.
func (s server) fail(b *testing.B, err error) {
	b.Helper()
	lines := slices.DeleteFunc(s.daemon.LastLines(5000), func(line string) bool {
		return !strings.Contains(line, "level=WARN") && !strings.Contains(line, "level=ERROR")
	})
	lines = lines[max(0, len(lines)-10):]
	b.Fatalf("%s: %v\n%s", s.name, err, strings.Join(lines, "\n"))
}

// cpu returns the CPU time that all processes of s have used.
func (s server) cpu(b *testing.B) time.Duration {
	b.Helper()
	if s.hasChangingChildren {
		return familyCPU(b, s.pids[0])
	}
	var sum time.Duration
	for _, pid := range s.pids {
		sum += cpuTime(pid)
	}
	return sum
}

// cpuTime returns the CPU time of a process, or 0 if it has exited.
func cpuTime(pid int) time.Duration {
	// Compute the id of the process's CPU clock as clock_getcpuclockid(3) does.
	const sched = 2
	var ts unix.Timespec
	if unix.ClockGettime(int32(^pid)<<3|sched, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// occupyNode starts a job that takes all processors of the node, so that all
// later jobs wait.
func (l *lab) occupyNode(b *testing.B) {
	b.Helper()
	g := site.NewGateway(l.daemons[2].Address, l.token)
	n, err := g.Node(context.Background(), l.Node)
	must(b, err)
	var d site.Description
	d.Job.Name, d.Job.Script, d.Job.WorkDir, d.Job.TimeLimit = "all", "#!/bin/sh\nsleep 3600\n", "/tmp", 60
	d.Job.Environment, d.Job.Tasks = []string{"PATH=/usr/bin:/bin"}, n.CPUs
	_, err = g.Submit(context.Background(), d)
	must(b, err)
}

// cancelWaiting cancels every job that has not started. Cancelled jobs do not
// fill up the controller: it forgets ended jobs when it needs the space.
func (l *lab) cancelWaiting(b *testing.B) {
	b.Helper()
	g := site.NewGateway(l.daemons[2].Address, l.token)
	list, err := g.JobStates(context.Background())
	must(b, err)
	for _, j := range list {
		if slices.Contains(j.State, "PENDING") {
			must(b, g.Cancel(context.Background(), j.ID))
		}
	}
}

// waitingJob returns the request body for submitting a job that will wait.
func (l *lab) waitingJob() string {
	var d site.Description
	d.Job.Name, d.Job.Script, d.Job.WorkDir, d.Job.TimeLimit = "waits", "#!/bin/sh\ntrue\n", "/tmp", 1
	d.Job.Environment = []string{"PATH=/usr/bin:/bin"}
	text, _ := json.Marshal(d)
	return string(text)
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
