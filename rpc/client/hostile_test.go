package client_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// drip sends the beginning of an answer, and then single bytes until the
// connection ends.
func drip(nc net.Conn, length string) {
	io.WriteString(nc, length)
	for {
		if _, err := io.WriteString(nc, "\x2d"); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The controllers in the list "slowly" misbehave by sending their answers
// slowly. Those in the list "bad" misbehave in other ways.
var slowly = []struct {
	name string
	act  func(nc net.Conn, v codec.Version)
}{
	{"a byte now and then", func(nc net.Conn, _ codec.Version) { drip(nc, "\x00\x00\x10\x00") }},
	{"a byte now and then, a gigabyte announced", func(nc net.Conn, _ codec.Version) { drip(nc, "\x3f\xff\xff\xff") }},
	{"a byte of the length now and then", func(nc net.Conn, _ codec.Version) { drip(nc, "\x00") }},
	{"the whole budget is announced, half of a piece sent", func(nc net.Conn, v codec.Version) {
		io.WriteString(nc, "\x00\x80\x00\x00")
		nc.Write(make([]byte, 32<<10))
		io.Copy(io.Discard, nc)
	}},
	{"the whole budget is announced, two pieces sent", func(nc net.Conn, v codec.Version) {
		io.WriteString(nc, "\x00\x80\x00\x00")
		nc.Write(make([]byte, 128<<10))
		io.Copy(io.Discard, nc)
	}},
}

// TestHostileControllers checks controllers that misbehave in different ways,
// with fifty requests to each. Each request must end. Afterwards no goroutine
// may remain, and all memory, including that of the budget, must be free again.
func TestHostileControllers(t *testing.T) { // not in parallel: it measures the memory of the process
	const times = 1000 / 20
	type way func(nc net.Conn, v codec.Version)
	var act atomic.Value // holds a way to misbehave; an abandoned connection may still use the previous one
	p := script(t, "ctl", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing {
			rc(nc, r.Version, 0)
			return
		}
		act.Load().(way)(nc, r.Version)
	})
	const allowance = 16 << 20
	budget := client.NewBudget(allowance)
	config := client.Config{Controllers: []client.Address{p.Address}, Answers: budget, Stall: 300 * time.Millisecond}
	long := config
	config.Timeout = 500 * time.Millisecond
	quick, patient := client.New(config), client.New(long)
	list := func(c *client.Client) error {
		_, err := c.Nodes(context.Background(), ann, model.Query{}, func(*model.Node) error { return nil })
		return err
	}
	var before, after runtime.MemStats
	act.Store(way(func(nc net.Conn, v codec.Version) { rc(nc, v, 4711) }))
	list(quick)
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	for _, tt := range bad {
		act.Store(way(tt.act))
		c := patient
		if tt.kind == errs.Timeout {
			c = quick
		}
		atOnce(times, func() {
			if err := list(c); errs.KindOf(err) != tt.kind {
				t.Errorf("%s: %v", tt.name, err)
			}
		})
	}
	for _, tt := range slowly {
		act.Store(way(tt.act))
		atOnce(times, func() {
			if err := list(quick); errs.KindOf(err) != errs.Timeout && errs.KindOf(err) != errs.Unavailable && errs.KindOf(err) != errs.BadAnswer {
				t.Errorf("%s: %v", tt.name, err)
			}
		})
	}
	eventually(t, "the goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines+5 })
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("%d bytes more than before", grown)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 1000*(512<<10) {
		t.Errorf("%d bytes were allocated", taken)
	}
	if budget.Free() != allowance {
		t.Errorf("%d of %d bytes free", budget.Free(), allowance)
	}
	act.Store(way(func(nc net.Conn, v codec.Version) { answer(nc, v, message.ResponseNodeInfo, &message.NodeInfo{}) }))
	if err := list(quick); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// atOnce calls f n times, partly concurrently.
func atOnce(n int, f func()) {
	var wait sync.WaitGroup
	places := make(chan struct{}, 25)
	for range n {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			f()
		})
	}
	wait.Wait()
}

// TestLongerThanTheProtocol checks the error for a list that is longer than the
// limit of the protocol. It must say so, and what can still be requested.
func TestLongerThanTheProtocol(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
	p := script(t, "ctl", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing {
			rc(nc, r.Version, 0)
			return
		}
		lists.Add(1)
		nc.Write([]byte{0xf0, 0, 0, 1})
	})
	c := client.New(client.Config{Controllers: []client.Address{p.Address, p.Address}})
	_, err := c.Jobs(context.Background(), ann, model.Query{}, func(*model.Job) error { return nil })
	const text = "the controller's answer has 4026531841 bytes; the limit of the protocol is 1073741824"
	if errs.KindOf(err) != errs.BadAnswer || err.Error() != text || !strings.Contains(errs.HintOf(err), "users=NAME") {
		t.Errorf("got %v, hint %q", err, errs.HintOf(err))
	}
	if lists.Load() != 1 {
		t.Errorf("%d lists were requested", lists.Load())
	}
}
