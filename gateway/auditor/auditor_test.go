package auditor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/service"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// FuzzAuditLine checks that, whatever texts a worker sends, the result is a
// single line of JSON that contains these texts and is safe to show on a
// terminal.
func FuzzAuditLine(f *testing.F) {
	for _, s := range []string{"", "alice", "a\"b\\c", "\x00\x1f\x7f\n\r\t", "\xff\xc3", "\u2028\u202e\ufeff", "𝄞\U000e0001\U0010ffff", strings.Repeat("é", 600)} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, user, object string) {
		c := &change{id: "r-1", worker: work.WorkerChannel{Number: 1, PID: 2}, facts: ipc.Connection{UID: ipc.NoID, Addr: object, Listener: user},
			msg: &query.Intent{User: user, Forwarded: user, UID: ipc.NoID, Object: object}}
		for _, line := range [][]byte{c.intentLine(time.Now()), c.outcomeLine(time.Now(), endReported, "", &query.Outcome{Code: user, Result: object})} {
			if n := strings.Count(string(line), "\n"); n != 1 || line[len(line)-1] != '\n' {
				t.Fatalf("%d line feeds in %q", n, line)
			}
			for _, r := range strings.TrimSuffix(string(line), "\n") {
				if !unicode.IsPrint(r) {
					t.Fatalf("%U in %q", r, line)
				}
			}
			var got struct {
				Worker struct {
					User, Object string
					Forwarded    string `json:"forwarded_for"`
				}
			}
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			for _, pair := range [][2]string{{user, got.Worker.User}, {user, got.Worker.Forwarded}, {object, got.Worker.Object}} {
				want := string([]rune(pair[0])) // U+FFFD replaces each byte of invalid UTF-8
				if len(pair[0]) <= maxText && pair[1] != want || len(pair[1]) > 3*maxText+3 {
					t.Fatalf("%q came back as %q", pair[0], pair[1])
				}
			}
		}
	})
}

// A disk is a log file for tests. It can be full, and its writes can hang.
type disk struct {
	mu        sync.Mutex
	free      int
	text      string
	hang      chan struct{}
	syncFails bool // the next append reports that its text may or may not be in the file
}

func (d *disk) append(text []byte) (int, error) {
	if d.hang != nil {
		<-d.hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(text), d.free)
	d.text += string(text[:n])
	if d.syncFails {
		d.syncFails = false
		return 0, errSync
	}
	if d.free -= n; n < len(text) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}
func (d *disk) content() string { d.mu.Lock(); defer d.mu.Unlock(); return d.text }
func (d *disk) setFree(n int)   { d.mu.Lock(); d.free = n; d.mu.Unlock() }

func testAudit(t *testing.T, d *disk, failOpen bool, timeout time.Duration) *journal {
	t.Helper()
	a, err := newJournal(&ipc.LogFD{FailOpen: failOpen, Path: "/log"})
	if err != nil {
		t.Fatal(err)
	}
	a.timeout = timeout
	go a.write(d)
	return a
}

// requestChange queues an intent, waits for the answer, and reports whether the
// change was granted.
func requestChange(a *journal, text string) bool {
	answer := make(chan bool, 1)
	a.queueIntent([]byte(text), func() []byte { return []byte("unmade " + text) }, func(granted bool) { answer <- granted })
	return <-answer
}

func await(t *testing.T, desc string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", desc)
		}
	}
}

// TestAuditDiskFull checks that changes are refused while the disk is full. The
// outcomes of earlier changes are queued, and written when there is space
// again.
func TestAuditDiskFull(t *testing.T) {
	d := &disk{free: 4}
	a := testAudit(t, d, false, testTimeout)
	if !requestChange(a, "one\n") || requestChange(a, "two\n") {
		t.Fatal("a line that fits was refused, or one that does not fit was written")
	}
	a.queueOutcome([]byte("end of one\n"))
	if requestChange(a, "three\n") {
		t.Error("change three was granted")
	}
	d.setFree(1000)
	await(t, "the outcome", func() bool { return d.content() == "one\nend of one\n" })
	if !requestChange(a, "four\n") {
		t.Error("change four was refused")
	}
	a.queueOutcome([]byte("end of four\n"))
	a.close()
	if want := "one\nend of one\nfour\nend of four\n"; d.content() != want || a.pending != 0 {
		t.Errorf("%q, %d owed", d.content(), a.pending)
	}
}

// TestAuditOpen checks FailOpen: while nothing can be written, changes are
// granted, and the queue stays bounded.
func TestAuditOpen(t *testing.T) {
	d := &disk{}
	a := testAudit(t, d, true, testTimeout)
	for range 3 * maxPending {
		a.queueIntent([]byte("x\n"), nil, func(granted bool) {
			if !granted {
				t.Error("refused")
			}
			a.queueOutcome([]byte("y\n"))
		})
	}
	await(t, "an end to it", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.queue) <= 2*maxPending && a.failing })
	a.close()
}

// TestAuditHangs checks what happens while a write to the file hangs: changes
// are refused when their time limit expires, and nothing else is delayed. The
// first line of a refused change may still be written later. In that case, a
// second line must record that the change was not made.
func TestAuditHangs(t *testing.T) {
	for _, syncFails := range []bool{false, true} {
		d := &disk{free: 1 << 20, hang: make(chan struct{}), syncFails: syncFails}
		a := testAudit(t, d, false, 20*time.Millisecond)
		for range 3 {
			if requestChange(a, "one\n") {
				t.Error("let through")
			}
		}
		close(d.hang)
		await(t, "that it was not made", func() bool { return strings.Contains(d.content(), "unmade one\n") })
		await(t, "the end of all", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.pending == 0 && len(a.queue) == 0 })
		if intents, notMade := strings.Count("\n"+d.content(), "\none\n"), strings.Count(d.content(), "unmade one\n"); intents != notMade {
			t.Errorf("%d intents, %d ends: %q", intents, notMade, d.content())
		}
		a.close()
	}
}

// TestAuditOpenHangs checks FailOpen while a write to the file hangs. Changes are
// granted when their time limit expires, and from then on at once. When the file
// is writable again, the log line has the number of all lines that are lost.
func TestAuditOpenHangs(t *testing.T) {
	text := logged(t)
	d := &disk{free: 1 << 20, hang: make(chan struct{})}
	a := testAudit(t, d, true, 20*time.Millisecond)
	granted := make(chan bool, 3)
	request := func(text string) {
		a.queueIntent([]byte(text), nil, func(g bool) { granted <- g })
	}
	locked := func(f func() bool) func() bool {
		return func() bool { a.mu.Lock(); defer a.mu.Unlock(); return f() }
	}
	request("one\n")
	await(t, "the write", locked(func() bool { return len(a.queue) == 0 }))
	request("two\n")
	request("three\n")
	await(t, "that the write is known to hang", locked(func() bool { return a.stuck }))
	for range 3 {
		if !<-granted {
			t.Error("a change was refused")
		}
	}
	if !requestChange(a, "four\n") || !locked(func() bool { return len(a.queue) <= 2 && len(a.queue)+a.dropped == 3 })() { // on a busy machine, even change two may find that the file hangs
		t.Error("change four was refused, or waited for the file")
	}
	if !locked(func() bool { return int(a.counts.dropped.n.Load()) == a.dropped })() {
		t.Error("the counters lack a dropped line")
	}
	for i := range 4 {
		a.queueOutcome(fmt.Appendf(nil, "end of %d\n", i))
	}
	close(d.hang)
	await(t, "all outcomes", func() bool { return d.content() == "one\nend of 0\nend of 1\nend of 2\nend of 3\n" })
	if !requestChange(a, "five\n") || !strings.HasSuffix(d.content(), "five\n") {
		t.Errorf("change five was refused, or is not in %q", d.content())
	}
	a.queueOutcome(nil)
	a.close()
	if n := strings.Count(text.String(), "lines_lost"); n != 1 || !strings.Contains(text.String(), "lines_lost=3 path=/log\n") || strings.Count(text.String(), "path=/log") != 2 || a.pending != 0 {
		t.Errorf("%d changes are pending, and the log is\n%s", a.pending, text)
	}
}

// TestTorn checks that after a full disk has cut off a line, the next line does
// not continue it. It also checks that lines go to the file that the parent
// sent last.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	f := new(file)
	useFile := func(name, text string) {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
		must(t, err)
		f.use(fd, &ipc.LogFD{Sync: true, Torn: text != ""})
	}
	useFile("a", "{\"half")
	for range 2 {
		n, err := f.append([]byte("{}\n"))
		if must(t, err); n != 3 {
			t.Errorf("%d bytes, want 3", n)
		}
	}
	useFile("never used", "")
	useFile("b", "")
	_, err := f.append([]byte("[]\n"))
	must(t, err)
	for name, want := range map[string]string{"a": "{\"half\n{}\n{}\n", "b": "[]\n", "never used": ""} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

// TestPathChecked checks that nothing is written when the parent reports that
// the file can't be used.
func TestPathChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	reason := errors.New("its file was removed")
	f := &file{checkPath: func() error { return reason }}
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	must(t, err)
	f.use(fd, &ipc.LogFD{Path: "log"})
	if n, err := f.append([]byte("1\n")); n != 0 || err != reason {
		t.Errorf("%d bytes, %v", n, err)
	}
	reason = nil
	_, err = f.append([]byte("2\n"))
	must(t, err)
	if got, _ := os.ReadFile(path); string(got) != "2\n" {
		t.Errorf("%q", got)
	}
}

// A nearlyFull is a disk that is nearly full. Its first write stores only as
// many bytes as are free. Each later write stores at most 100 bytes.
type nearlyFull struct {
	free int
	text string
}

func (s *nearlyFull) Write(b []byte) (int, error) {
	n := min(len(b), s.free)
	s.text, s.free = s.text+string(b[:n]), 100
	if n < len(b) {
		return n, unix.ENOSPC
	}
	return n, nil
}

// TestAuditCutOff simulates a full disk that cuts off the lines, once at each
// byte. The method append must count a line as written if, and only if, a
// reader of the file finds the complete line.
func TestAuditCutOff(t *testing.T) {
	const two, third = "{1}\n{2}\n", "{3}\n"
	for free := range len(two) {
		s := &nearlyFull{free: free}
		end := &tail{to: s}
		n, err := end.append([]byte(two))
		if _, secondErr := end.append([]byte(third)); err == nil || secondErr != nil {
			t.Fatalf("%v, %v", err, secondErr)
		}
		var found string
		for line := range strings.Lines(s.text) {
			if strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}\n") {
				found += line
			}
		}
		if n -= n % len(third); found != two[:n]+third {
			t.Errorf("room for %d: %d bytes count, and a reader finds %q in %q", free, n, found, s.text)
		}
	}
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	f := &file{active: &openFile{File: null, info: ipc.LogFD{Sync: true}, tail: tail{to: &nearlyFull{free: 5}}}} // a device can't be synced
	if n, err := f.append([]byte(two)); n != 0 || !errors.Is(err, errSync) {
		t.Errorf("after a failed sync: %d bytes, %v", n, err)
	}
}

// TestAsksForLeaveOnAndOn checks that a worker that announces changes too often
// gets the answer TryLater. If the worker continues, it must be reported.
func TestAsksForLeaveOnAndOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, err := newJournal(new(ipc.LogFD))
		must(t, err)
		a := newClient(shared, nil, newTestClient(t, uint32(maxPending)), false, func(uint64) (*ipc.Connection, error) { return nil, nil })
		announce := func() error {
			_, err := a.handle(&query.Intent{ID: 1})
			return err
		}
		deferred := func() int { return int(shared.counts.deferred.n.Load()) }
		const announced = 20_000
		for range announced { // twice the permitted rate
			time.Sleep(time.Second / time.Duration(2*limit.Intents.PerSecond))
			must(t, announce())
		}
		if n := announced/2 - int(limit.Intents.Burst); deferred() < n-1 || deferred() > n+1 {
			t.Errorf("%d of %d intents were deferred", deferred(), announced)
		}
		before, burst := deferred(), int(limit.IntentRetries.Burst)
		err = nil
		for n := 0; err == nil && n < 2*burst; n++ {
			err = announce()
		}
		if n := deferred() - before; n < burst-1 || n > burst || fmt.Sprint(err) != "sent Intent too often" {
			t.Errorf("after %d more at once: %v", n, err)
		}
	})
}

// TestChangesNeverEnded tests workers that never complete a change. All workers
// share a limit on open changes. A worker may use at most half of the rest of
// this limit, so that the other workers can still make changes. A refusal
// for this reason must be logged. Changes for closed connections must also
// count against the worker's rate limit.
func TestChangesNeverEnded(t *testing.T) {
	log := logged(t)
	shared, err := newJournal(new(ipc.LogFD))
	must(t, err)
	shared.timeout = time.Hour
	id := uint64(0)
	changes := func(a *client, attempts int) int {
		for range attempts {
			id++
			handled, err := a.handle(&query.Intent{ID: id})
			if !handled || err != nil {
				t.Fatal(handled, err)
			}
		}
		return len(a.open)
	}
	connect := func(facts *ipc.Connection) *client {
		a := newClient(shared, nil, newTestClient(t, uint32(maxPending)), false, func(uint64) (*ipc.Connection, error) { return facts, nil })
		a.quota = rate.New(rate.Row{Burst: 2 * float64(maxPending)}, time.Now())
		return a
	}
	for hog := range 5 {
		if n := changes(connect(new(ipc.Connection)), maxPending); n != maxPending>>(hog+1) {
			t.Errorf("worker %d has %d of %d changes in progress", hog, n, maxPending)
		}
	}
	if n := changes(connect(new(ipc.Connection)), 100); n != 100 {
		t.Errorf("an honest worker has %d of 100 changes", n)
	}
	if !strings.Contains(log.String(), "holds too many changes without an outcome") {
		t.Error("the refusal is not logged")
	}
	disconnected := connect(nil)
	changes(disconnected, 10)
	if now := time.Now(); !disconnected.quota.Take(now, float64(2*maxPending-10)) || disconnected.quota.Take(now, 1) {
		t.Errorf("after 10 intents for closed connections, not %d of %d tokens are left", 2*maxPending-10, 2*maxPending)
	}
}

// held stands for the facts of a dispatcher, according to which the worker has
// each connection.
func held(uint64) (*ipc.Connection, error) { return new(ipc.Connection), nil }

// newTestClient returns a Client for a worker with the given limit on
// concurrent requests.
func newTestClient(t *testing.T, requests uint32) *service.Client {
	t.Helper()
	return service.NewClient(work.WorkerChannel{Number: 1, Requests: requests}, pair(t, ipc.Auditor, ipc.Worker))
}

// pair returns one end of a channel. Nothing reads the other end.
func pair(t *testing.T, self, peer ipc.Role) *ipc.Channel {
	t.Helper()
	c, fd, err := ipc.Pair(self, peer)
	must(t, err)
	t.Cleanup(func() { c.Close(); unix.Close(fd) })
	return c
}

// logged returns a buffer that receives everything that is logged during the
// test.
func logged(t *testing.T) *bytes.Buffer {
	t.Helper()
	text, before := new(bytes.Buffer), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(text, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return text
}

// TestHolds checks that a worker can make changes only for the connections that
// it has, and only while it has them.
func TestHolds(t *testing.T) {
	a := newAuditor(nil)
	a.addFacts(&work.ConnectionFacts{Worker: 1, Connection: ipc.Connection{ID: 1, Addr: "a"}})
	a.addFacts(&work.ConnectionFacts{Worker: 2, Connection: ipc.Connection{ID: 3}})
	a.addFacts(&work.ConnectionFacts{Worker: 1, Connection: ipc.Connection{ID: 4}})
	a.dropConn(4)
	for id, want := range map[uint64]string{0: "never existed", 1: "a", 3: "does not hold", 4: "gone", 2: "gone"} {
		facts, err := a.waitForFacts(1, id)
		got := fmt.Sprint(err)
		switch {
		case err == nil && facts == nil:
			got = "gone"
		case err == nil:
			got = facts.Addr
		}
		if !strings.Contains(got, want) {
			t.Errorf("connection %d: %q, want %q", id, got, want)
		}
	}
	go a.addFacts(&work.ConnectionFacts{Worker: 1, Connection: ipc.Connection{ID: 9, Addr: "late"}})
	if facts, err := a.waitForFacts(1, 9); err != nil || facts.Addr != "late" {
		t.Errorf("a connection whose facts arrive late: %+v, %v", facts, err)
	}
	a.workerExited(&work.WorkerExited{Worker: 1})
	if len(a.connections) != 1 || len(a.holders) != 1 {
		t.Errorf("%v, %v are left", a.connections, a.holders)
	}
}

// TestExitsAtOnce checks that the auditor keeps no data about a worker that had
// already exited when the auditor learned that the worker existed.
func TestExitsAtOnce(t *testing.T) {
	dispatcher, fd, err := ipc.Pair(ipc.Managers, ipc.Auditor)
	must(t, err)
	own, err := ipc.Open(fd, ipc.Auditor, ipc.Managers)
	must(t, err)
	t.Cleanup(func() { own.Close() })
	for _, m := range []ipc.Message{new(ipc.ServiceSetup), new(ipc.Attributes)} {
		must(t, dispatcher.Send(m))
		_, err := own.Receive()
		must(t, err)
	}
	must(t, own.Send(new(ipc.Ready)))
	_, err = dispatcher.Receive()
	must(t, err)
	for number := range uint32(20) {
		worker, fd, err := ipc.Pair(ipc.Worker, ipc.Auditor)
		must(t, err)
		must(t, worker.Close())
		must(t, dispatcher.Send(&work.WorkerChannel{Number: number}, fd))
		must(t, unix.Close(fd))
		must(t, dispatcher.Send(&work.WorkerExited{Worker: number}))
	}
	must(t, dispatcher.Close())
	a := newAuditor(own)
	must(t, service.Run(ipc.Auditor, own, a))
	a.exiting.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.clients) != 0 {
		t.Errorf("%d workers are left", len(a.clients))
	}
}

// TestCloseCounts checks that a stop logs the number of lines that could not be
// written, including those of the write that hangs.
func TestCloseCounts(t *testing.T) {
	log := logged(t)
	d := &disk{free: 1 << 20, hang: make(chan struct{})}
	a := testAudit(t, d, false, 50*time.Millisecond)
	a.pending = 2
	a.queueOutcome([]byte("one\n"))
	await(t, "the write of the first line", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.writing == 1 })
	a.queueOutcome([]byte("two\n"))
	a.close()
	if !strings.Contains(log.String(), "unwritten lines are lost\" lines=2") {
		t.Errorf("logged %s", log)
	}
	close(d.hang)
	<-a.done
}

// TestDispatcherExits checks that the changes of workers that outlive the
// dispatcher get the outcome "unknown".
func TestDispatcherExits(t *testing.T) {
	d := &disk{free: 1 << 20}
	a := newAuditor(nil)
	a.journal = testAudit(t, d, false, testTimeout)
	w := newClient(a.journal, nil, newTestClient(t, 5), false, held)
	a.clients[1] = w
	must(t, w.handleIntent(&query.Intent{ID: 1}))
	await(t, "the change is granted", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.open[1].granted })
	close(w.done)
	a.Close()
	if text := d.content(); !strings.Contains(text, `"ended":"unknown","because":"the dispatcher exited"`) {
		t.Errorf("the log is %s", text)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testTimeout limits how long a test waits for an event.
const testTimeout = time.Minute
