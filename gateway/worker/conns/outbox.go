package conns

import (
	"sync"

	"schedrestd/ipc"
)

// An outbox sends messages to the dispatcher in the order in which they were
// added. The Table's mutex guards it, but is not held while a message is sent,
// because the dispatcher may be slow to read.
type outbox struct {
	send    func(ipc.Message) error
	waiting []ipc.Message
	sending bool       // whether a goroutine is sending; it also sends what is added in the meantime
	sent    *sync.Cond // for the end of sending
}

// addLocked adds a message. It is sent when the caller calls flushLocked.
func (o *outbox) addLocked(m ipc.Message) { o.waiting = append(o.waiting, m) }

// flushLocked sends all messages, unless another goroutine is already doing so.
// It unlocks the mutex.
func (o *outbox) flushLocked(mu *sync.Mutex) {
	defer mu.Unlock()
	if o.sending || len(o.waiting) == 0 {
		return
	}
	o.sending = true
	for len(o.waiting) > 0 {
		list := o.waiting
		o.waiting = nil
		mu.Unlock()
		for _, m := range list {
			_ = o.send(m) // an error means that the dispatcher has exited
		}
		mu.Lock()
	}
	o.sending = false
	o.sent.Broadcast()
}

// awaitLocked waits until all messages are sent.
func (o *outbox) awaitLocked() {
	for o.sending {
		o.sent.Wait()
	}
}
