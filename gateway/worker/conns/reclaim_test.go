package conns

import (
	"net"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/gateway/worker/count"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A fakeEngine is an Engine that counts what it is asked to do.
type fakeEngine struct {
	answering        bool // a request has just arrived
	drained, stopped atomic.Int32
	cancelled        atomic.Int32
}

func (e *fakeEngine) Reclaim() bool { return !e.answering }
func (e *fakeEngine) Drain()        { e.drained.Add(1) }
func (e *fakeEngine) StopReading()  { e.stopped.Add(1) }
func (e *fakeEngine) Cancel()       { e.cancelled.Add(1) }
func (e *fakeEngine) Close() error  { return nil }

// TestSlotIsFreed checks that a reclaimed connection gives up its slot at once,
// although it stays open for a moment, and that a drain still reaches it. If a
// request has just arrived, the connection must keep its slot until the answer
// is sent.
func TestSlotIsFreed(t *testing.T) {
	for _, tt := range []struct {
		name      string
		answering bool
		uncounted int
		want      work.Stage // that is reported; 0: the slot is free
	}{{"no request", false, 0, 0}, {"a request", true, 0, work.Answering}, {"too many that are not counted", false, maxUncounted, work.Idle}} {
		t.Run(tt.name, func(t *testing.T) {
			table, c, _ := tableWithConn(t)
			sent := make(chan ipc.Message, 10)
			table.outbox.send = func(m ipc.Message) error { sent <- m; return nil }
			engine := &fakeEngine{answering: tt.answering}
			c.Attach(c.raw, c.raw, engine)
			c.Idle()
			if m, ok := (<-sent).(*work.Progress); !ok || m.Stage != work.Idle {
				t.Fatalf("sent %v", m)
			}
			table.uncounted = tt.uncounted
			if table.Reclaim(1); tt.want == work.Idle {
				time.Sleep(10 * time.Millisecond) // if end released the slot, it would by then
			} else {
				switch m := (<-sent).(type) {
				case *work.ConnectionDone:
					if tt.want != 0 {
						t.Error("the slot is free")
					}
				case *work.Progress:
					if m.Stage != tt.want {
						t.Errorf("stage %v", m.Stage)
					}
				}
			}
			table.Drain(0, 0)
			table.StopReading()
			if engine.drained.Load() != 1 || engine.stopped.Load() != 1 {
				t.Errorf("a drain does not reach it: %d, %d", engine.drained.Load(), engine.stopped.Load())
			}
			c.Closed()
			table.Flush()
			closed := len(sent)
			if free := tt.want == 0; free == (closed > 0) {
				t.Errorf("%d messages when it is closed", closed)
			}
			if _, exists := table.conns[1]; exists || table.uncounted != tt.uncounted {
				t.Errorf("it is still in the table; %d not counted", table.uncounted)
			}
		})
	}
}

// TestLateConnection checks that a drain also reaches a connection whose
// handshake ends after the drain has begun.
func TestLateConnection(t *testing.T) {
	table, c, _ := tableWithConn(t)
	table.Drain(0, 0)
	engine := new(fakeEngine)
	c.Attach(c.raw, c.raw, engine)
	if table.Drain(0, time.Hour); engine.drained.Load() != 0 {
		t.Error("it is drained before its client can send a request")
	}
	if table.Drain(time.Hour, 0); engine.drained.Load() != 1 || engine.stopped.Load() != 0 {
		t.Error("it is not drained")
	}
	if table.StopReading(); engine.stopped.Load() != 0 {
		t.Error("it is stopped before its client can send a request")
	}
	c.Begun()
	if table.StopReading(); engine.stopped.Load() != 1 {
		t.Error("it is not stopped")
	}
}

// TestHangup checks that a request is cancelled when its client is gone, and
// when requests are examined.
func TestHangup(t *testing.T) {
	table, c, client := tableWithConn(t)
	engine := new(fakeEngine)
	c.Attach(c.raw, c.raw, engine)
	q := begin(c, httptest.NewRecorder())
	client.Close()
	eventually(t, func() bool { return engine.cancelled.Load() > 0 })
	q.Finish()
	eventually(t, func() bool { table.mu.Lock(); defer table.mu.Unlock(); return !table.hangupCheckScheduled })

	for _, parked := range []bool{false, true} { // only while a request is parked, a client that sends no more is gone
		_, c, client := tableWithConn(t)
		engine := new(fakeEngine)
		c.Attach(c.raw, c.raw, engine)
		q := begin(c, httptest.NewRecorder())
		if parked {
			q.Park(func() {}, false)
		}
		if err := client.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if parked {
			eventually(t, func() bool { return engine.cancelled.Load() > 0 })
		} else if time.Sleep(4 * hangupInterval); engine.cancelled.Load() > 0 {
			t.Error("a request was cancelled whose client may read the answer")
		}
		q.Finish()
	}

	var due []int
	for i := range 101 {
		if i > 1 && isDue(i) {
			due = append(due, i)
		}
	}
	if want := []int{2, 4, 8, 16, 20, 32, 40, 60, 64, 80, 100}; len(due) != len(want) || due[4] != 20 {
		t.Errorf("examined after %v intervals, want %v", due, want)
	}
}

// TestOutbox checks that messages are sent in order, and that a dispatcher that
// does not read its messages delays only one goroutine.
func TestOutbox(t *testing.T) {
	read := make(chan ipc.Message)
	table := NewTable(testAdmission, new(count.Counters), func(m ipc.Message) error {
		select {
		case read <- m:
		case <-t.Context().Done():
		}
		return nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { table.Add(1) })
	eventually(t, func() bool { table.mu.Lock(); defer table.mu.Unlock(); return table.outbox.sending })
	second := table.Add(2)
	second.ReportMalformed()
	second.Closed()
	for range 2 * maxReports { // the rest is counted, and not kept
		table.conns[1].ReportMalformed()
	}
	if n := len(table.outbox.waiting); n > maxReports+1 {
		t.Errorf("%d messages wait", n)
	}
	var kinds []ipc.Kind
	for range 4 {
		kinds = append(kinds, ipc.KindOf(<-read))
	}
	taken := ipc.KindOf(new(work.ConnectionTaken))
	want := []ipc.Kind{taken, taken, ipc.KindOf(new(work.Offence)), ipc.KindOf(new(work.ConnectionDone))}
	for i := range want {
		if kinds[i] != want[i] {
			t.Errorf("message %d is of kind %v, want %v", i, kinds[i], want[i])
		}
	}
	go func() {
		for t.Context().Err() == nil {
			select {
			case <-read:
			case <-t.Context().Done():
			}
		}
	}()
	wg.Wait()
	table.Flush()
	if len(table.outbox.waiting) > 0 {
		t.Error("Flush did not wait")
	}
}

type overShare struct{}

func (overShare) IsOverShare() bool { return true }

// TestAbortOverShare checks that a request whose user holds more than their
// share is aborted while connections wait, but not while it waits for a change.
// A request without a place is not aborted.
func TestAbortOverShare(t *testing.T) {
	for _, tt := range []struct {
		name  string
		place Place
		parks bool
		want  bool
	}{{"a place", overShare{}, false, true}, {"waits for a change", overShare{}, true, false}, {"no place", nil, false, false}} {
		table, c, _ := tableWithConn(t)
		q := begin(c, httptest.NewRecorder())
		q.Admit(tt.place)
		if tt.parks {
			q.Park(func() {}, false)
		}
		table.mu.Lock()
		now := time.Now()
		q.start, table.waitingSince, table.lastWait = now.Add(-time.Hour), now.Add(-time.Hour), now
		table.pressLocked(c)
		if q.aborted != tt.want {
			t.Errorf("%s: aborted: %t", tt.name, q.aborted)
		}
		table.mu.Unlock()
	}
}
