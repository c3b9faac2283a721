package worker

import (
	"sync/atomic"
	"time"

	"schedrestd/rate"
)

// Frames that carry neither a request nor its body cost the server work all
// the same, and the client almost nothing: PING, SETTINGS, PRIORITY,
// RST_STREAM, WINDOW_UPDATE, CONTINUATION, empty DATA. So a connection has a
// budget of such frames, which its answers refill.
//
// An honest client stays far below it. It begins with at most ten frames
// (nghttp sends five PRIORITY), sends a keepalive PING every 10 s or less
// often (gRPC), and at most two WINDOW_UPDATE for 4 KiB of an answer (Go: one
// for the stream, one for the connection). Go's client cancels a request with
// RST_STREAM and PING. The burst is nghttp2's default for cancelled requests,
// 1000, and the rate is enough for 33 cancelled requests a second, as
// nghttp2's is.
const (
	frameBurst = 1000
	frameRate  = 100 // a second

	frameCredit = 8       // for an answer that was sent completely
	updateBytes = 1 << 10 // bytes of an answer that pay for one WINDOW_UPDATE
	smallData   = 32      // bytes; a shorter DATA frame counts as empty, unless it is the last one
)

// budget limits the frames that a client can send on one connection without
// making progress. Only the goroutine that reads calls spend.
type budget struct {
	bucket  *rate.Bucket
	updates int64 // bytes of answers for which no WINDOW_UPDATE has come

	answers, bytes atomic.Int64 // sent since the last spend
}

func newBudget(now time.Time) *budget {
	return &budget{bucket: rate.New(frameBurst, frameRate, now)}
}

// earn credits the client with a frame of an answer.
func (b *budget) earn(f frame) {
	if f.kind == dataFrame {
		b.bytes.Add(int64(f.length))
	}
	if (f.kind == dataFrame || f.kind == headersFrame) && f.flags&endStream != 0 {
		b.answers.Add(1)
	}
}

// cost returns what a client's frame costs. One that opens a stream costs as
// much as another: its answer earns more than that.
func (b *budget) cost(f frame) int {
	switch {
	case f.kind == dataFrame && (f.flags&endStream != 0 || f.length >= smallData):
		return 0
	case f.kind == windowFrame:
		// A window may be as large as the client likes, and all of its updates
		// come at once: this credit has no limit.
		if b.updates += b.bytes.Swap(0); b.updates >= updateBytes {
			b.updates -= updateBytes
			return 0
		}
	}
	return 1
}

// spend takes the cost of frames, and reports whether the budget allowed it.
func (b *budget) spend(now time.Time, cost int) bool {
	b.bucket.Owe(now, float64(cost)-frameCredit*float64(b.answers.Swap(0))) // above the burst it is lost
	return b.bucket.Left(now) >= 0
}
