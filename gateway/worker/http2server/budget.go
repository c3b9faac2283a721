package http2server

import (
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
)

// Frames cost the client almost nothing, but they make the server work. So each
// connection has a budget. Every frame of the client takes from it, whatever
// its type and the state of its stream. Only progress adds to it: a complete
// answer, bytes of an answer, and bytes of a body that a handler has read. A
// RST_STREAM that the server sends takes from the budget, too, because only
// a client that ignores the state of its streams provokes many of them.
//
// An honest client stays far below the budget. It begins with at most ten
// frames (nghttp sends five PRIORITY frames). It sends a keepalive PING at most
// every 10 s (gRPC). For every 4 KiB of an answer, it sends at most two
// WINDOW_UPDATE frames (Go sends one for the stream and one for the
// connection). Go's client cancels a request with RST_STREAM and PING.
const (
	frameCredit = 8       // for each completely sent answer
	updateBytes = 2 << 10 // bytes of an answer that pay for one WINDOW_UPDATE
	smallData   = 32      // in bytes; a DATA frame with fewer bytes of a body is paid at once
)

// A budget limits how many frames a client can send on one connection without
// making progress. Only the goroutine that reads the connection may call
// received and spend. Other methods may be called concurrently.
//
// A client sends a body before the handler reads it, and it may send it in
// pieces that are as short as the lines of a script. So a DATA frame is not
// paid when it arrives, but when its stream is closed, and only if the handler
// has not read its bytes by then. net/http's flow control limits how many bytes
// a client can send before a handler reads them.
type budget struct {
	bucket *rate.Bucket

	earned atomic.Int64 // what the budget has gained since the last spend; negative if more was lost
	bytes  atomic.Int64 // bytes of answers that have not yet paid for a WINDOW_UPDATE
	taken  atomic.Int64 // bytes of bodies that handlers have read and that have not yet paid for DATA frames

	mu      *sync.Mutex        // the connection's; guards the fields below
	bodies  map[uint32]*unpaid // by the stream's number; only streams that are not closed and have a body
	highest uint32             // the highest number of a stream that the client has opened
}

// unpaid holds the DATA frames of a stream that have not been paid yet.
type unpaid struct {
	frames   int64
	bytes    int64 // of all DATA frames of the stream
	complete bool  // whether the client has ended its body
}

func newBudget(now time.Time, mu *sync.Mutex) *budget {
	return &budget{mu: mu, bucket: rate.New(limit.Frames, now), bodies: map[uint32]*unpaid{}}
}

// sent records a frame that the server sends.
func (b *budget) sent(f frame) {
	switch {
	case f.kind == dataFrame:
		b.bytes.Add(int64(f.length))
	case f.kind == resetFrame:
		b.earned.Add(-1)
		b.close(f.stream)
	}
	if (f.kind == dataFrame || f.kind == headersFrame) && f.flags&endStream != 0 {
		b.earned.Add(frameCredit)
		b.close(f.stream)
	}
}

// took records that a handler has read n bytes of a body.
func (b *budget) took(n int) { b.taken.Add(int64(n)) }

// received records a frame of the client, and returns its price.
func (b *budget) received(f frame) int {
	switch f.kind {
	case dataFrame:
		return b.receivedData(f)
	case headersFrame:
		b.open(f)
	case resetFrame:
		b.close(f.stream)
	case windowFrame:
		// The value of b.bytes has no upper limit, because a client may
		// choose a window of any size and send all its window updates at once.
		if b.bytes.Load() >= updateBytes {
			b.bytes.Add(-updateBytes)
			return 0
		}
	}
	return 1
}

// open records a stream whose request has a body, or the trailers that end such
// a body. A header block on any other stream changes nothing.
func (b *budget) open(f frame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if body := b.bodies[f.stream]; body != nil {
		body.complete = body.complete || f.flags&endStream != 0
		return
	}
	if f.stream <= b.highest {
		return
	}
	if b.highest = f.stream; f.flags&endStream == 0 {
		b.bodies[f.stream] = &unpaid{}
	}
}

// receivedData records a DATA frame. The frame costs nothing yet if its bytes
// belong to a body and are more than a few. A frame with padding is paid at
// once, because the server has to announce a new window for the padding.
func (b *budget) receivedData(f frame) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	body := b.bodies[f.stream]
	if body == nil || body.complete {
		return 1
	}
	body.complete = f.flags&endStream != 0
	body.bytes += int64(f.length)
	if f.length < smallData || f.flags&isPadded != 0 {
		return 1
	}
	body.frames++
	return 0
}

// close settles the frames of a stream that has been closed. The budget pays for
// the share of the frames that corresponds to the bytes that no handler has
// read. It counts the bytes that handlers have read for all streams together,
// because net/http does not tell a handler the number of its stream. If these
// bytes pay for a stream whose body was not read, they are missing when the
// stream whose body was read is closed.
func (b *budget) close(stream uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body := b.bodies[stream]
	if body == nil {
		return
	}
	delete(b.bodies, stream)
	if body.bytes == 0 {
		return
	}
	read := min(body.bytes, b.taken.Load())
	b.taken.Add(-read)
	b.earned.Add(-body.frames * (body.bytes - read) / body.bytes)
}

// spend subtracts cost from the budget, adds what the budget has gained since
// the last call, and reports whether the budget was sufficient.
func (b *budget) spend(now time.Time, cost int) bool {
	return b.bucket.Charge(now, float64(cost)-float64(b.earned.Swap(0))) == 0 // credit above the burst is lost
}
