package worker

import (
	"sync/atomic"
	"time"

	"schedrestd/rate"
)

// Some frames carry neither a request nor its body: PING, SETTINGS, PRIORITY,
// RST_STREAM, WINDOW_UPDATE, CONTINUATION and empty DATA. They cost the client
// almost nothing, but they make the server work. So each connection has a
// budget for such frames. Every complete answer adds to the budget.
//
// An honest client stays far below the budget. It begins with at most ten
// frames (nghttp sends five PRIORITY frames). It sends a keepalive PING at most
// every 10 s (gRPC). For every 4 KiB of an answer, it sends at most two
// WINDOW_UPDATE frames (Go sends one for the stream and one for the
// connection). Go's client cancels a request with RST_STREAM and PING. The
// burst of 1000 is nghttp2's default for cancelled requests. The rate permits
// 33 cancelled requests a second, as in nghttp2.
const (
	frameBurst = 1000
	frameRate  = 100 // a second

	frameCredit = 8       // for each completely sent answer
	updateBytes = 1 << 10 // bytes of an answer that pay for one WINDOW_UPDATE
	smallData   = 32      // in bytes; a shorter DATA frame is treated as empty unless it ends its stream
)

// A budget limits how many frames a client can send on one connection without
// making progress. Only the goroutine that reads the connection may call spend.
type budget struct {
	bucket  *rate.Bucket
	updates int64 // bytes of answers that have not yet paid for a WINDOW_UPDATE

	answers, bytes atomic.Int64 // sent since the last spend
}

func newBudget(now time.Time) *budget {
	return &budget{bucket: rate.New(frameBurst, frameRate, now)}
}

// earn credits the budget for a frame of an answer.
func (b *budget) earn(f frame) {
	if f.kind == dataFrame {
		b.bytes.Add(int64(f.length))
	}
	if (f.kind == dataFrame || f.kind == headersFrame) && f.flags&endStream != 0 {
		b.answers.Add(1)
	}
}

// cost returns how much a client's frame takes from the budget. For most
// frames, this is 1. For a frame that opens a stream, it is also 1, but the
// answer on this stream earns more (frameCredit).
func (b *budget) cost(f frame) int {
	switch {
	case f.kind == dataFrame && (f.flags&endStream != 0 || f.length >= smallData):
		return 0
	case f.kind == windowFrame:
		// The value of b.updates has no upper limit, because a client may
		// choose a window of any size and send all its window updates at once.
		if b.updates += b.bytes.Swap(0); b.updates >= updateBytes {
			b.updates -= updateBytes
			return 0
		}
	}
	return 1
}

// spend subtracts cost from the budget, adds the credit for the answers sent
// since the last call, and reports whether the budget was sufficient.
func (b *budget) spend(now time.Time, cost int) bool {
	b.bucket.Charge(now, float64(cost)-frameCredit*float64(b.answers.Swap(0))) // credit above the burst is lost
	return b.bucket.Tokens(now) >= 0
}
