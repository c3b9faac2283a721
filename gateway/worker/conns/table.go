// Package conns owns the state of a worker's connections: their stages, the
// requests on them, the deadlines of slow clients, their offences, and the
// drain. Several goroutines change it. An HTTP/1 connection also has an engine
// (package http1server), which reads and writes it, and reports what happens on
// it. To end the connection, this package asks the engine, because only the
// engine knows at each moment whether a request can still be refused.
//
// One mutex guards all of it (Table.mu). It is held only for a moment: while it
// is held, no message is sent, and no function is called that may wait. The
// messages to the dispatcher leave in the order in which the state changed
// (type outbox).
//
// A connection is added when the dispatcher passes it. It then goes through
// these stages (work.Stage), which the dispatcher learns only if they last, so
// that a busy connection causes no messages:
//
//	Waiting    from the beginning until the first request
//	Answering  while a request is being answered
//	Watching   while all requests wait for a change
//	Calling    while some of them wait for an accounting daemon instead
//	Idle       until the next request
//
// A connection normally has a slot of the dispatcher's until it is closed. While it
// is Watching or Calling, the dispatcher gives the slot to another connection. If
// another client needs the slot, the dispatcher reclaims it: a connection
// without a request then gives up the slot at once, even if it stays open for a
// moment.
package conns

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/count"
	"schedrestd/internal/penalty"
	"schedrestd/internal/rate"
	"schedrestd/ipc/work"
)

// A Table has the connections of a worker.
type Table struct {
	counts    *count.Counters
	penalties bool // whether offences are reported

	// mu guards the fields below, and the fields of each Conn and each Request.
	mu              sync.Mutex
	conns           map[uint64]*Conn // those that are open or counted
	open            int              // connections that are not closed, and calls of Hold; a sync.WaitGroup panics if one begins while Wait returns
	closed          *sync.Cond       // for the end of the last of them
	changed         []*Conn          // connections whose stage may have to be reported
	reportScheduled bool             // whether the next call of reportStages is scheduled
	uncounted       int              // number of open connections that the dispatcher no longer counts
	outbox          outbox

	requests             map[*Request]struct{} // requests in progress
	admitted             map[*Request]struct{} // those that are being answered
	hangupCheckScheduled bool                  // whether the next call of checkHangups is scheduled
	waitingSince         time.Time             // when connections began to wait for a slot, as far as is known
	lastWait             time.Time             // last time at which a connection was known to be waiting

	retired, draining bool

	forwarded *penalty.Table[netip.Addr] // sources behind proxies, which the dispatcher can't tell apart
	rejected  *rate.Buckets[uint64]      // credentials that were answered 401, by their hashes
	reports   *rate.Bucket               // limits reports of offences
	lines     *rate.Bucket               // limits log lines about offences
}

// A Conn is a connection in a Table.
type Conn struct {
	table  *Table
	id     uint64 // the number that the dispatcher gave it
	silent bool   // neither its stages nor its offences are reported, because it is the worker's only client

	stage     work.Stage
	since     time.Time  // when the stage began
	reported  work.Stage // stage that was last reported to the dispatcher
	inChanged bool       // whether it is in Table.changed
	begun     bool       // whether a part of an HTTP/1 request has arrived
	counted   bool       // whether the dispatcher counts it: until ConnectionDone is sent
	closed    bool       // whether it is closed
	requests  int        // number of requests in progress
	parked    int        // number of these that wait for a change or for an accounting daemon
	calls     int        // number of these that wait for an accounting daemon
	closing   bool       // whether its next answer is the last
	drained   bool       // whether Engine.Drain has been called
	failed    bool       // whether a request was answered with an error

	pausedUntil time.Time // time until which its client is blocked

	conn  net.Conn         // the connection, with the layers around it that exist so far; nil before Attach
	raw   *clientconn.Conn // the lowest layer; nil before Attach
	http1 Engine           // nil if it is not an HTTP/1 connection, or not yet
}

// An Engine serves an HTTP/1 connection (package http1server). None of its
// methods waits for the client, except that they may close the connection.
type Engine interface {
	Reclaim() bool // see http1server.Conn.Reclaim
	Drain()
	StopReading()
	Cancel()
	Close() error
}

// A Request is a request in progress, and the http.ResponseWriter of its
// answer. It begins in the queue of requests. Once Admit is called, it is being
// answered, and its client must not be too slow (see clientconn.Portion).
type Request struct {
	http.ResponseWriter
	control  *http.ResponseController
	conn     *Conn
	isStream bool // whether it is an HTTP/2 stream, which has its own limits because it can stall while its connection does not
	start    time.Time
	source   netip.Addr // the client behind a proxy, if the request has one
	body     *slowBody  // nil if it has no body
	status   int        // status of the answer; 0 before its header is sent

	// The fields below are guarded by Table.mu.
	place        Place  // nil if the request has none
	stop         func() // ends the wait for a change or for an accounting daemon; nil if the request does not wait
	calls        bool   // whether it waits for an accounting daemon
	finished     bool
	polls        int // how often checkHangups has seen it
	stall        time.Duration
	readDeadline time.Time // when the next piece of the body is due; zero if the handler does not wait for it
	writeStart   time.Time // when the current write to a stream began to wait for the client; zero if no write is in progress
	checkedWrite time.Time // value of writeStart for which dropStalled was scheduled
	bodyDeadline time.Time // when the next piece of the body is due while other clients wait; zero if no piece is due
	aborted      bool      // the client missed its deadline
}

// A Place is what limits the number of requests that are answered concurrently.
type Place interface {
	// IsOverShare reports whether the user of the request holds more than their
	// share of the places. It must not wait.
	IsOverShare() bool
}

// A slowBody counts the bytes of a body as they arrive.
type slowBody struct {
	io.ReadCloser
	request *Request
	ended   bool // all of it was read; guarded by Table.mu
}

// unlock unlocks mu, and sends the messages that were added meanwhile.
func (t *Table) unlock() { t.outbox.flushLocked(&t.mu) }
