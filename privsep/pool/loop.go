package pool

import (
	"time"

	"schedrestd/errs"
)

// Loop is the goroutine that owns what the parent knows of connections, pools and workers.
// It calls functions one after the other, and none of them may block. Goroutines that
// block, until a connection, a message, a process or a moment has come, send it functions.
// Each waits until its function was taken: a worker that floods the parent fills its own
// channel and nothing else.
type Loop struct {
	events  chan event
	settled func() // called after each event
	over    chan struct{}
}

// event is a function for the loop to call.
type event struct {
	do   func() error
	done chan<- error // gets what do returned; nil: nobody waits for that
}

func NewLoop() *Loop {
	return &Loop{events: make(chan event), settled: func() {}, over: make(chan struct{})}
}

// Run calls what is sent until stop.
func (l *Loop) Run() {
	for {
		select {
		case e := <-l.events:
			err := e.do()
			l.settled()
			if e.done != nil {
				e.done <- err
			}
		case <-l.over:
			return
		}
	}
}

// Stop ends Run. What is sent afterwards is not called.
func (l *Loop) Stop() { close(l.over) }

// send has the loop take e. It reports false after Stop.
func (l *Loop) send(e event) bool {
	select {
	case l.events <- e:
		return true
	case <-l.over:
		return false
	}
}

// Do has the loop call f, and does not wait for its end.
func (l *Loop) Do(f func()) {
	l.send(event{do: func() error { f(); return nil }})
}

// Call has the loop call f, and returns what f returns.
func (l *Loop) Call(f func() error) error {
	done := make(chan error, 1)
	return l.result(l.send(event{f, done}), done)
}

// Await has the loop call start, and returns what the loop calls start's argument with, then or later.
func (l *Loop) Await(start func(done func(error))) error {
	done := make(chan error, 1)
	return l.result(l.send(event{do: func() error { start(func(err error) { done <- err }); return nil }}), done)
}

// result waits for the result of an event that was sent.
func (l *Loop) result(sent bool, done <-chan error) error {
	if sent {
		select {
		case err := <-done:
			return err
		case <-l.over:
		}
	}
	return errs.New(errs.Unavailable, "%s", Stopping)
}

// After has the loop call f when d has passed. A function that was stopped too late is called all the same.
func (l *Loop) After(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { l.Do(f) })
}
