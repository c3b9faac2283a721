package conns

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/conntest"
	"schedrestd/gateway/worker/count"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

var testAdmission = work.Admission{Auth: time.Second, Malformed: time.Second, Threshold: 3 * time.Second}

// tableWithConn returns a Table with one connection, and the client's end of
// the connection.
func tableWithConn(t *testing.T) (*Table, *Conn, net.Conn) {
	t.Helper()
	fd, client := conntest.Pair(t)
	raw, err := clientconn.New(fd, &ipc.Connection{ID: 1, Network: ipc.Unix}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Conn.Close() })
	table := NewTable(testAdmission, new(count.Counters), func(ipc.Message) error { return nil })
	c := table.Add(1)
	raw.Closed = c.Closed
	c.Attach(raw, raw, nil)
	return table, c, client
}

// begin begins a GET request on c, and admits it.
func begin(c *Conn, w http.ResponseWriter) *Request {
	q := c.Begin(w, httptest.NewRequest("GET", "/", nil), netip.Addr{})
	q.Admit(nil)
	return q
}

// TestReportsLastingStages checks that a short stage is not reported,
// and that a lasting one is reported once. After the message ConnectionDone,
// the Table must report nothing more about the connection.
func TestReportsLastingStages(t *testing.T) {
	var mu sync.Mutex
	var sent []ipc.Message
	w := NewTable(testAdmission, new(count.Counters), func(m ipc.Message) error {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, m)
		return nil
	})
	c := w.Add(1)
	at := time.Now()
	expect := func(after time.Duration, want ...work.Stage) {
		t.Helper()
		at = at.Add(after)
		var got []work.Stage
		w.mu.Lock()
		w.reportDueLocked(at)
		for _, m := range w.outbox.waiting {
			got = append(got, m.(*work.Progress).Stage)
		}
		w.unlock()
		if len(got) != len(want) || len(got) == 1 && got[0] != want[0] {
			t.Errorf("reported %v, want %v", got, want)
		}
	}
	stage := func(s work.Stage) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.setStageLocked(c, s)
		c.since = at
	}
	w.mu.Lock()
	w.reportScheduled = true // so that the Table does not call reportStages itself
	w.mu.Unlock()
	stage(work.Waiting)
	expect(reportDelay) // the client may only be slow
	expect(silentReportDelay, work.Waiting)
	c.reported = work.Answering
	stage(work.Waiting)
	c.Begun()
	expect(reportDelay, work.Waiting)
	for range 10 { // the connection is busy
		stage(work.Answering)
		expect(reportDelay / 4)
		stage(work.Idle)
		expect(reportDelay / 4)
	}
	expect(reportDelay, work.Idle)
	expect(reportDelay)
	stage(work.Answering)
	expect(reportDelay, work.Answering)
	stage(work.Idle)
	c.Closed()
	c.Closed()
	expect(time.Hour)
	mu.Lock()
	defer mu.Unlock()
	done := 0
	for _, m := range sent {
		if _, ok := m.(*work.ConnectionDone); ok {
			done++
		}
	}
	if _, ok := sent[0].(*work.ConnectionTaken); !ok || done != 1 {
		t.Errorf("sent %v", sent)
	}
}

// TestReports checks that offences are reported only for open connections, and
// only up to a limit. If penalties are disabled, no offence may be reported.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := 0
		w := NewTable(testAdmission, new(count.Counters), func(m ipc.Message) error {
			if ipc.KindOf(m) == ipc.KindOf(new(work.Offence)) {
				reports++
			}
			return nil
		})
		c := w.Add(1)
		want := func(name string, n int) {
			t.Helper()
			if reports != n {
				t.Errorf("%s: %d reports, want %d", name, reports, n)
			}
			reports = 0
		}
		c.ReportMalformed()
		want("an open connection", 1)
		for range 10_000 {
			c.ReportMalformed()
		}
		want("a burst", maxReports-1)
		time.Sleep(time.Second)
		for range 10_000 {
			c.ReportMalformed()
		}
		want("after a second", int(limit.OffenceReports.PerSecond))
		silent := w.AddSilent(2)
		silent.ReportMalformed()
		want("the only client", 0)
		NewTable(work.Admission{}, new(count.Counters), w.outbox.send).Add(1).ReportMalformed()
		want("without penalties", 0)

		w.Pause(1, time.Minute)
		if !c.IsBlocked() {
			t.Error("the client is not blocked")
		}
		w.Pause(3, time.Minute) // the connection is closed
		c.Closed()
		time.Sleep(time.Second)
		c.ReportMalformed()
		want("a closed connection", 0)
	})
}

// TestClosedWhileAnswered checks an HTTP/2 connection that is closed while its
// requests are being answered. It must count as open until the requests end,
// and offences of its client must still be reported.
func TestClosedWhileAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []ipc.Kind
		w := NewTable(testAdmission, new(count.Counters), func(m ipc.Message) error {
			sent = append(sent, ipc.KindOf(m))
			return nil
		})
		c := w.Add(1)
		near, _ := net.Pipe()
		raw := clientconn.Wrap(near, &ipc.Connection{ID: 1}, time.Minute)
		c.Attach(raw, raw, nil)
		one, other := begin(c, httptest.NewRecorder()), begin(c, httptest.NewRecorder())
		c.Closed()
		one.Finish()
		c.ReportMalformed()
		other.Finish()
		c.Closed()
		if want := []ipc.Kind{ipc.KindOf(new(work.ConnectionTaken)), ipc.KindOf(new(work.Offence)), ipc.KindOf(new(work.ConnectionDone))}; !slices.Equal(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
		time.Sleep(time.Second) // until the scheduled call of reportStages has ended
	})
}

// TestRetiredMeanwhile checks that the connection of a request ends with its
// answer if the worker was retired while the request was in progress. Otherwise
// the client would send the next request to the same worker.
func TestRetiredMeanwhile(t *testing.T) {
	for _, tt := range []struct {
		name          string
		waits, retire bool
		want          string // header Connection of the answer
	}{
		{"waited", true, false, ""},
		{"retired in a wait", true, true, "close"},
		{"retired without a wait", false, true, "close"},
		{"did not wait", false, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table, c, _ := tableWithConn(t)
			w := httptest.NewRecorder()
			q := begin(c, w)
			defer q.Finish()
			if tt.waits {
				q.Park(func() {}, false)
			}
			if tt.retire {
				table.Retire()
			}
			if tt.waits {
				q.Resume(nil)
			}
			q.WriteHeader(http.StatusNotModified)
			if got := w.Result().Header.Get("Connection"); got != tt.want {
				t.Errorf("Connection: %q, want %q", got, tt.want)
			}
		})
	}
}

// TestBodyThatContinues checks that a client that keeps sending a body gets
// more time, in proportion to the bytes that it sends.
func TestBodyThatContinues(t *testing.T) {
	table, c, _ := tableWithConn(t)
	r := httptest.NewRequest("POST", "/", io.LimitReader(zeros{}, 10*clientconn.Portion))
	p := c.Begin(httptest.NewRecorder(), r, netip.Addr{})
	p.Admit(nil)
	table.Shorten()
	begun := p.bodyDeadline
	if n, err := io.Copy(io.Discard, r.Body); n != 10*clientconn.Portion || err != nil {
		t.Fatal(n, err)
	}
	if got := p.bodyDeadline.Sub(begun); got < 9*clientconn.PortionTime || got > 10*clientconn.PortionTime {
		t.Errorf("ten portions extend the deadline by %s", got)
	}
	p.Finish()
	table.Shorten() // the request has no deadline to shorten
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestStalledOrSlow checks that a stream is dropped if its client gives it no
// window. It must not be dropped if the connection is full, if the write has
// made progress, or if a window update may be arriving.
func TestStalledOrSlow(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *Request, net.Conn)
		want   bool
	}{
		{"no window", func(*testing.T, *Request, net.Conn) {}, true},
		{"the connection is full", func(t *testing.T, p *Request, _ net.Conn) {
			go p.conn.raw.Write(make([]byte, 16<<20))
			eventually(t, p.conn.raw.IsWriting)
		}, false},
		{"unread input", func(t *testing.T, p *Request, far net.Conn) {
			io.WriteString(far, "WINDOW_UPDATE")
			eventually(t, p.conn.raw.HasUnread)
		}, false},
		{"the write has progressed", func(_ *testing.T, p *Request, _ net.Conn) { p.setWriteStart(begun.Add(time.Second)) }, false},
		{"no write waits", func(_ *testing.T, p *Request, _ net.Conn) { p.setWriteStart(time.Time{}) }, false},
		{"the request is finished", func(_ *testing.T, p *Request, _ net.Conn) { p.finished = true }, false},
	} {
		table, c, far := tableWithConn(t)
		p := begin(c, httptest.NewRecorder())
		p.isStream, p.writeStart = true, begun
		tt.change(t, p, far)
		p.dropStalled(begun)
		if n := table.counts.Reported.Total(); n > 0 != tt.want {
			t.Errorf("%s: %d offences", tt.name, n)
		}
	}
}

// eventually calls cond until it returns true.
func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition never becomes true")
		}
	}
}

// TestCalling checks the stage of a connection whose requests wait for changes or
// for an accounting daemon, and that the latter end when it is reclaimed.
func TestCalling(t *testing.T) {
	table, c, _ := tableWithConn(t)
	c.Attach(c.raw, c.raw, new(fakeEngine))
	stopped := 0
	first, second := begin(c, httptest.NewRecorder()), begin(c, httptest.NewRecorder())
	for _, step := range []struct {
		name string
		do   func()
		want work.Stage
	}{
		{"two are answered", func() {}, work.Answering},
		{"one calls", func() { first.Park(func() { stopped++ }, true) }, work.Answering},
		{"the other watches", func() { second.Park(func() {}, false) }, work.Calling},
		{"the dispatcher does not know", func() { table.Reclaim(1) }, work.Calling},
		{"the dispatcher knows", func() { table.Reclaim(1) }, work.Calling},
		{"the call goes on", func() { first.Resume(nil) }, work.Answering},
		{"the call has ended", first.Finish, work.Watching},
	} {
		if step.do(); c.stage != step.want {
			t.Errorf("%s: %v, want %v", step.name, c.stage, step.want)
		}
	}
	if stopped != 1 {
		t.Errorf("stopped %d times, want once", stopped)
	}
	second.Finish()
}

// TestReclaimWatching checks that a connection that follows changes, but does not
// read them, ends soon after the dispatcher has reclaimed it.
func TestReclaimWatching(t *testing.T) {
	table, c, _ := tableWithConn(t)
	c.Attach(c.raw, c.raw, new(fakeEngine))
	q := begin(c, httptest.NewRecorder())
	stopped := make(chan struct{})
	q.Park(func() { close(stopped) }, false)
	table.mu.Lock()
	c.reported = work.Watching
	table.mu.Unlock()
	written := make(chan time.Duration)
	go func() {
		begun := time.Now()
		for err := error(nil); err == nil; {
			_, err = c.raw.Write(make([]byte, 1<<20))
		}
		written <- time.Since(begun)
	}()
	eventually(t, c.raw.IsWriting)
	table.Reclaim(1)
	<-stopped
	if took := <-written; took >= time.Minute { // the limit without the reclaim
		t.Errorf("a write has waited %v", took)
	}
	q.Finish()
}

// TestHoldAtTheEnd checks that a draining worker may refuse a connection at the moment
// at which its last one closes.
func TestHoldAtTheEnd(t *testing.T) {
	table := NewTable(work.Admission{}, new(count.Counters), func(ipc.Message) error { return nil })
	for range 1000 {
		last := table.Hold()
		var waiting sync.WaitGroup
		waiting.Go(table.Wait)
		runtime.Gosched() // so that it usually waits by now
		last()
		refused := table.Hold()
		runtime.Gosched()
		refused()
		waiting.Wait()
	}
}
