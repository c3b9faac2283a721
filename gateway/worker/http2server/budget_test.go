package http2server

import (
	"sync"
	"testing"
	"time"

	"schedrestd/internal/limit"
)

// TestFrameBudget checks that the frames of an honest client stay within the
// budget for a minute, and that a flood exceeds it.
func TestFrameBudget(t *testing.T) {
	const headers, data, ping, window, reset = headersFrame, dataFrame, 6, windowFrame, resetFrame
	type client struct {
		b      *budget
		now    time.Time
		stream uint32
		ok     bool
	}
	sendFrame := func(c *client, f frame) {
		if f.kind == headers {
			c.stream += 2
		}
		f.stream = c.stream
		c.ok = c.b.spend(c.now, c.b.received(f)) && c.ok
	}
	sends := func(c *client, kinds ...byte) {
		for _, kind := range kinds {
			sendFrame(c, frame{kind: kind, length: 4})
		}
	}
	body := func(c *client, n, length int, flags ...byte) {
		sendFrame(c, frame{kind: headers})
		for range n {
			sendFrame(c, frame{kind: data, length: length, flags: append(flags, 0)[0]})
		}
		sendFrame(c, frame{kind: data, flags: endStream})
	}
	answer := func(c *client, pieces, length int) {
		c.b.sent(frame{kind: headers, length: 20})
		for range pieces {
			c.b.sent(frame{kind: data, length: length})
		}
		c.b.sent(frame{kind: data, flags: endStream, stream: c.stream})
	}
	minute := func(each time.Duration, act func(*client)) func(*client) {
		return func(c *client) {
			for d := time.Duration(0); d < time.Minute; d += each {
				act(c)
				c.now = c.now.Add(each)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		act    func(*client)
		honest bool
	}{
		{"10,000 short answers a second", minute(100*time.Microsecond, func(c *client) {
			sends(c, headers)
			answer(c, 1, 500)
			sends(c, window, window)
		}), true},
		{"a long answer, with two updates for each 4 KiB", minute(time.Second, func(c *client) {
			sends(c, headers)
			answer(c, 10_000, 4<<10)
			for range 10_000 {
				sends(c, window, window)
			}
		}), true},
		{"a body in 4000 frames of 64 bytes, all sent before the handler reads it", minute(time.Second, func(c *client) {
			body(c, 4000, 64)
			c.b.took(4000 * 64)
			answer(c, 1, 100)
		}), true},
		{"a body of 256 KiB that the handler does not read", minute(time.Second, func(c *client) {
			body(c, 16, 16<<10)
			answer(c, 1, 100)
		}), true},
		{"small bodies that the handler does not read", minute(time.Second, func(c *client) {
			body(c, 1000, 64)
			answer(c, 1, 100)
		}), false},
		{"bytes that a handler has read pay only once", minute(time.Second, func(c *client) {
			body(c, 1000, 64)
			answer(c, 1, 100)
			body(c, 1000, 64)
			c.b.took(1000 * 64)
			answer(c, 1, 100)
		}), false},
		{"a body in frames of one byte", minute(time.Second, func(c *client) {
			body(c, 1000, 1)
			c.b.took(1000)
			answer(c, 1, 100)
		}), false},
		{"a body in padded frames", minute(time.Second, func(c *client) {
			body(c, 1000, 64, isPadded)
			c.b.took(1000 * 64)
			answer(c, 1, 100)
		}), false},
		{"DATA behind the end of a body", minute(time.Second, func(c *client) {
			body(c, 1, 64)
			for range 200 {
				sendFrame(c, frame{kind: data, length: 64})
			}
			c.b.took(64)
			answer(c, 1, 100)
		}), false},
		{"DATA on a stream that is closed", minute(time.Second, func(c *client) {
			body(c, 1, 64)
			c.b.took(64)
			answer(c, 1, 100)
			for range 200 {
				sendFrame(c, frame{kind: data, length: 64})
			}
		}), false},
		{"70 requests a second that the server resets", minute(time.Second, func(c *client) {
			for range 70 {
				sends(c, headers)
				c.b.sent(frame{kind: reset, stream: c.stream})
			}
		}), false},
		{"30 requests a second that are cancelled, with a PING each", minute(time.Second, func(c *client) {
			for range 30 {
				sends(c, headers, reset, ping)
			}
		}), true},
		{"a PING each second", minute(time.Second, func(c *client) { sends(c, ping) }), true},
		{"100 requests a second that are reset", minute(10*time.Millisecond, func(c *client) { sends(c, headers, reset) }), false},
		{"1000 PINGs a second", minute(time.Millisecond, func(c *client) { sends(c, ping) }), false},
		{"an answer byte by byte", minute(10*time.Millisecond, func(c *client) {
			c.b.sent(frame{kind: data, length: 1})
			sends(c, window, window)
		}), false},
		{"credit that was saved up", func(c *client) {
			sends(c, headers)
			answer(c, 1000, 16<<10)
			sends(c, headers)
			for range 2 * int(limit.Frames.Burst) {
				sends(c, ping)
			}
		}, false},
	} {
		now := time.Unix(1_700_000_000, 0)
		c := &client{b: newBudget(now, new(sync.Mutex)), now: now, ok: true}
		if tt.act(c); c.ok != tt.honest {
			t.Errorf("%s: within the budget: %t", tt.name, c.ok)
		}
	}
}
