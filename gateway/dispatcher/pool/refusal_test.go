package pool

import (
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/process"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
)

// TestRefusalsAreBounded checks connections that are turned away. Up to a
// limited rate, the dispatcher must pass them to a ready worker, together with
// the HTTP status that the worker must send. It must close all others
// immediately. It must also close its own descriptor of each connection that it
// has passed to a worker.
func TestRefusalsAreBounded(t *testing.T) {
	p, _ := idle(t, testTimeout)
	parent, child := channelTo(t)
	p.workers[1] = &worker{Process: &process.Process{Channel: parent}, held: map[uint64]*Connection{}}
	passed := make(chan int)
	go func() {
		n := 0
		for {
			m, err := child.Receive()
			if err != nil {
				passed <- n
				return
			}
			c := m.Message.(*ipc.Connection)
			if c.ID != 0 || c.RefuseStatus != Unavailable || c.RetryAfter != 5 {
				t.Errorf("passed %+v", c)
			}
			unix.Close(m.FDs[0])
			n++
		}
	}()
	p.Slots.Answer = p.Refuse
	refuse := func(tls bool) {
		c, client := accepted(t, p.Slots)
		c.TLS = tls
		c.Network, c.Listener = ipc.Unix, "unix:/s"
		p.sync(func() { p.Slots.Drop(c, Unavailable, "of this test") })
		if b, err := io.ReadAll(client); err != nil || len(b) > 0 {
			t.Errorf("read %q, %v", b, err)
		}
		client.Close()
	}
	refuse(false) // the worker is not ready
	p.workers[1].ready = true
	refuse(true) // the client expects TLS
	for range 10 * int(limit.RefusalAnswers.Burst) {
		refuse(false)
	}
	parent.Close()
	if n := <-passed; n < 1 || n > 9*int(limit.RefusalAnswers.Burst) {
		t.Errorf("%d of %d are passed to a worker", n, 10*int(limit.RefusalAnswers.Burst))
	}
	if n := p.Slots.held(); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
}
