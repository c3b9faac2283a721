package privsep

import (
	"time"

	"schedrestd/errs"
)

// loop is the goroutine that owns what the parent knows of connections, pools and workers.
// It calls functions one after the other, and none of them may block. Goroutines that
// block, until a connection, a message, a process or a moment has come, send it functions.
// Each waits until its function was taken: a worker that floods the parent fills its own
// channel and nothing else.
type loop struct {
	events  chan event
	settled func() // called after each event
	over    chan struct{}
}

// event is a function for the loop to call.
type event struct {
	do   func() error
	done chan<- error // gets what do returned; nil: nobody waits for that
}

func newLoop() *loop {
	return &loop{events: make(chan event), settled: func() {}, over: make(chan struct{})}
}

// run calls what is sent until stop.
func (l *loop) run() {
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

// stop ends run. What is sent afterwards is not called.
func (l *loop) stop() { close(l.over) }

// send has the loop take e. It reports false after stop.
func (l *loop) send(e event) bool {
	select {
	case l.events <- e:
		return true
	case <-l.over:
		return false
	}
}

// do has the loop call f, and does not wait for its end.
func (l *loop) do(f func()) {
	l.send(event{do: func() error { f(); return nil }})
}

// call has the loop call f, and returns what f returns.
func (l *loop) call(f func() error) error {
	done := make(chan error, 1)
	return l.result(l.send(event{f, done}), done)
}

// await has the loop call start, and returns what the loop calls start's argument with, then or later.
func (l *loop) await(start func(done func(error))) error {
	done := make(chan error, 1)
	return l.result(l.send(event{do: func() error { start(func(err error) { done <- err }); return nil }}), done)
}

// result waits for the result of an event that was sent.
func (l *loop) result(sent bool, done <-chan error) error {
	if sent {
		select {
		case err := <-done:
			return err
		case <-l.over:
		}
	}
	return errs.New(errs.Unavailable, "%s", stopping)
}

// after has the loop call f when d has passed. A function that was stopped too late is called all the same.
func (l *loop) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { l.do(f) })
}
