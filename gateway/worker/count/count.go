// Package count counts the events of a worker. Each part of the worker counts
// its own events in the Counters of the worker. They are logged when the worker
// receives SIGUSR1, and sent to the dispatcher as metrics (package meter).
package count

import "sync/atomic"

// A Counter counts events. It may be used concurrently.
type Counter struct{ total, unsent atomic.Uint64 }

// Add counts n events.
func (c *Counter) Add(n uint64) {
	c.total.Add(n)
	c.unsent.Add(n)
}

// Total returns the number of events since the start of the worker.
func (c *Counter) Total() uint64 { return c.total.Load() }

// Take returns the number of events since the last call of Take.
func (c *Counter) Take() uint64 {
	if c.unsent.Load() == 0 {
		return 0
	}
	return c.unsent.Swap(0)
}

// Counters counts events since this worker started. Only workers read requests,
// so each worker has its own counters.
type Counters struct {
	Requests               Counter // well-formed requests
	Unauthenticated        Counter // requests that were answered 401
	Paused, Limited, Share Counter // requests that were answered 429: source blocked, rate limit, concurrency limit of the user
	Overloaded             Counter // requests that were answered 503: concurrency limit of the worker
	WaitsRefused           Counter // requests that were answered 429 because too many others wait for changes

	BadRequests, Handshakes, Frames Counter // malformed input of HTTP/1, TLS and HTTP/2
	Stalled                         Counter // streams that were reset because the client did not read the answer
	Reported, Unreported            Counter // offences reported to the dispatcher, and offences not reported because there were too many

	Received, Sent Counter // bytes of the connections of all clients

	// Changed is called when the client of a connection has sent something,
	// because this usually changes other counters. It may be nil.
	Changed func()
}

// ReceivedBytes counts bytes from a client.
func (c *Counters) ReceivedBytes(n int) {
	c.Received.Add(uint64(max(0, n)))
	if c.Changed != nil {
		c.Changed()
	}
}
