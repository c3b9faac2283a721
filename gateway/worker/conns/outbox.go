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

// add adds a message. It is sent when the caller calls flush.
func (o *outbox) add(m ipc.Message) { o.waiting = append(o.waiting, m) }

// flush sends all messages, unless another goroutine is already doing so. It
// must be called with the mutex locked, and unlocks it.
func (o *outbox) flush(mu *sync.Mutex) {
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

// await waits until all messages are sent. It must be called with the mutex
// locked.
func (o *outbox) await() {
	for o.sending {
		o.sent.Wait()
	}
}
