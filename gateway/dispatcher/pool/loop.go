package pool

import (
	"time"

	"schedrestd/internal/errs"
)

// A Loop is the goroutine that owns the state of connections, pools and
// workers. It calls functions one after the other. None of them may block. The
// functions come from goroutines that wait for connections, messages, processes
// or timers. Such a goroutine waits until the loop has accepted its function.
// So a worker that floods the dispatcher with messages only fills its own
// channel.
type Loop struct {
	events     chan event
	afterEvent func() // called after each event
	done       chan struct{}
}

// An event is a function that the loop will call.
type event struct {
	do   func() error
	done chan<- error // gets the result of do; nil: the result is not needed
}

// NewLoop returns a Loop. The caller must call Run in a goroutine.
func NewLoop() *Loop {
	return &Loop{events: make(chan event), afterEvent: func() {}, done: make(chan struct{})}
}

// Run calls the functions that are sent to the loop. It returns after Stop.
func (l *Loop) Run() {
	for {
		select {
		case e := <-l.events:
			err := e.do()
			l.afterEvent()
			if e.done != nil {
				e.done <- err
			}
		case <-l.done:
			return
		}
	}
}

// Stop ends Run. Functions sent later are not called.
func (l *Loop) Stop() { close(l.done) }

// send passes e to the loop. It returns false after Stop.
func (l *Loop) send(e event) bool {
	select {
	case l.events <- e:
		return true
	case <-l.done:
		return false
	}
}

// Do makes the loop call f, and does not wait for f to return.
func (l *Loop) Do(f func()) {
	l.send(event{do: func() error { f(); return nil }})
}

// Call calls f in the loop, and returns the result of f.
func (l *Loop) Call(f func() error) error {
	done := make(chan error, 1)
	if l.send(event{f, done}) {
		select {
		case err := <-done:
			return err
		case <-l.done:
		}
	}
	return errs.New(errs.Unavailable, "%s", Stopping)
}

// After makes the loop call f after the time d. If the timer is stopped too
// late, the loop still calls f.
func (l *Loop) After(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { l.Do(f) })
}
