package conns

import (
	"sync"
	"time"

	"schedrestd/ipc/work"
)

// Retire makes each connection close after its next answer.
func (t *Table) Retire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retired = true
}

// Drain makes the next answer on each connection the last. It also closes each
// HTTP/1 connection that has been idle since its last request for the time idle,
// or without any request for the time fresh. The caller must call Drain
// repeatedly. If it closed connections at once, requests that clients are just
// sending would be lost. So clients that send requests often learn from an answer
// that their connections end.
func (t *Table) Drain(idle, fresh time.Duration) {
	now := time.Now()
	t.mu.Lock()
	t.draining = true
	t.mu.Unlock()
	t.each(Engine.Drain, func(c *Conn) bool {
		age := now.Sub(c.since)
		if c.drained || !c.silent && (c.stage == work.Idle && age < idle || c.stage == work.Waiting && age < fresh) {
			return false
		}
		if c.drained = true; c.stage != work.Answering {
			c.raw.Shorten() // see end
		}
		return true
	})
}

// StopReading ends the HTTP/1 connections on which no request is being answered,
// except those whose clients have sent nothing yet.
func (t *Table) StopReading() {
	t.each(Engine.StopReading, func(c *Conn) bool { return c.stage != work.Waiting || c.begun })
}

// Close closes all HTTP/1 connections.
func (t *Table) Close() {
	t.each(func(e Engine) { _ = e.Close() }, func(*Conn) bool { return true })
}

// each calls f for each HTTP/1 connection that the function selects accepts, and
// waits for all calls. A call may have to wait for a client that does not read:
// closing a TLS connection sends something.
func (t *Table) each(f func(Engine), selects func(*Conn) bool) {
	var list []Engine
	t.mu.Lock()
	for _, c := range t.conns {
		if c.http1 != nil && selects(c) {
			list = append(list, c.http1)
		}
	}
	t.mu.Unlock()
	var calls sync.WaitGroup
	for _, e := range list {
		calls.Go(func() { f(e) })
	}
	calls.Wait()
}

// Hold makes Wait wait until the function that it returns is called.
func (t *Table) Hold() (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.endOneLocked()
	}
}

// endOneLocked undoes a call of Hold, or records that a connection is closed.
func (t *Table) endOneLocked() {
	if t.open--; t.open == 0 {
		t.closed.Broadcast()
	}
}

// Wait waits until all connections are closed.
func (t *Table) Wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.open > 0 {
		t.closed.Wait()
	}
}

// Flush waits until all messages to the dispatcher are sent. The process must
// not exit before, because the dispatcher has to learn that its last connection
// was served.
func (t *Table) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outbox.awaitLocked()
}
