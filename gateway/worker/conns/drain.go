package conns

import (
	"sync"

	"schedrestd/ipc/work"
)

// Retire makes each connection close after its next answer.
func (t *Table) Retire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retired = true
}

// Drain closes the idle HTTP/1 connections, and makes the next answer of each
// other the last.
func (t *Table) Drain() {
	t.mu.Lock()
	t.draining = true
	for _, c := range t.conns {
		if c.raw != nil && c.stage != work.Answering {
			c.raw.Shorten() // see end
		}
	}
	t.mu.Unlock()
	t.each(Engine.Drain)
}

// StopReading ends the HTTP/1 connections on which no request is being answered.
func (t *Table) StopReading() {
	t.mu.Lock()
	t.stopping = true
	t.mu.Unlock()
	t.each(Engine.StopReading)
}

// Close closes all HTTP/1 connections.
func (t *Table) Close() { t.each(func(e Engine) { _ = e.Close() }) }

// each calls f for each HTTP/1 connection, and waits for all calls. A call may have
// to wait for a client that does not read: closing a TLS connection sends something.
func (t *Table) each(f func(Engine)) {
	var list []Engine
	t.mu.Lock()
	for _, c := range t.conns {
		if c.http1 != nil {
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
	t.open.Add(1)
	return t.open.Done
}

// Wait waits until all connections are closed.
func (t *Table) Wait() { t.open.Wait() }

// Flush waits until all messages to the dispatcher are sent. The process must
// not exit before, because the dispatcher has to learn that its last connection
// was served.
func (t *Table) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outbox.awaitLocked()
}
