package http2server

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// A fakeClient counts what it learns.
type fakeClient struct {
	blocked  bool
	offences int
}

func (c *fakeClient) Idle()            {}
func (c *fakeClient) Offended()        { c.offences++ }
func (c *fakeClient) Refused(error)    {}
func (c *fakeClient) ReadFailed(error) {}
func (c *fakeClient) IsBlocked() bool  { return c.blocked }

func rawFrame(kind, flags byte, stream uint32, payload string) string {
	return string([]byte{0, byte(len(payload) >> 8), byte(len(payload)), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}) + payload
}

// TestPausedFrames checks that a blocked source loses only the connections on
// which it committed an offence.
func TestPausedFrames(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	go io.WriteString(far, preface+strings.Repeat(rawFrame(6, 0, 0, "12345678"), 3))
	client := new(fakeClient)
	c := newConn(context.Background(), near, client, time.Minute)
	for _, tt := range []struct{ offended, paused, want bool }{{false, false, false}, {false, true, false}, {true, false, false}, {true, true, true}} {
		c.offended.Store(tt.offended)
		client.blocked = tt.paused
		if _, err := c.Read(make([]byte, 10)); (err != nil) != tt.want {
			t.Errorf("offended %t, paused %t: %v", tt.offended, tt.paused, err)
		}
	}
}

func TestQueue(t *testing.T) {
	q := newQueue()
	a, b := net.Pipe()
	defer b.Close()
	go q.put(a)
	if c, err := q.Accept(); err != nil || c != a {
		t.Errorf("got %v, %v", c, err)
	}
	q.Close()
	q.Close()
	if _, err := q.Accept(); err == nil {
		t.Error("a closed queue returns a connection")
	}
	q.put(a) // put must neither block nor leave the connection open
	if _, err := a.Write(nil); err != io.ErrClosedPipe {
		t.Errorf("a connection that arrived too late is left open: %v", err)
	}
}

// FuzzFrames checks that the scanner finds exactly the frames that contain an
// error code, no matter how the input is split.
func FuzzFrames(f *testing.F) {
	f.Add("", byte(1), byte(3))
	f.Add(strings.Repeat("x", 300), byte(0x2), byte(1))
	f.Add("\x00\x00\x04\x03", byte(0xb), byte(16))
	f.Fuzz(func(t *testing.T, data string, code, size byte) {
		data = data[:min(len(data), 60_000)]
		text := rawFrame(0, 0, 1, data) + rawFrame(3, 0, 1, "\x00\x00\x00"+string([]byte{code})) + rawFrame(4, 0, 0, "") +
			rawFrame(7, 0, 0, "\x00\x00\x00\x01\x00\x00\x00"+string([]byte{code})+data) + rawFrame(0, 0, 1, data)
		seen := 0
		var out frameScanner
		see := func(f frame) {
			if f.kind == resetFrame && isOffence(f.code(0)) || f.kind == goAwayFrame && isOffence(f.code(4)) {
				seen++
			}
		}
		for rest := text; rest != ""; {
			n := min(len(rest), int(size)+1)
			out.scan([]byte(rest[:n]), see)
			rest = rest[n:]
		}
		want := 0
		if isOffence(uint32(code)) {
			want = 2
		}
		if seen != want || out.skip != 0 || out.have != 0 {
			t.Errorf("%d of %d; in the middle of a frame: %d, %d", seen, want, out.skip, out.have)
		}
	})
}
