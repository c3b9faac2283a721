package process

import (
	"sync"

	"schedrestd/ipc"
)

// A Parent sends messages to the parent process. The messages wait in a queue.
// So this process never waits for the parent, which may be waiting for this
// process. A Parent is safe for concurrent use.
type Parent struct {
	channel *ipc.Channel
	wake    chan struct{} // gets an element when the queue has a new entry

	mu    sync.Mutex    // guards queue
	queue []ipc.Message // nil: close the channel
}

// NewParent returns a Parent for the process at the other end of channel.
func NewParent(channel *ipc.Channel) *Parent {
	p := &Parent{channel: channel, wake: make(chan struct{}, 1)}
	go p.run()
	return p
}

// Send sends m after all earlier messages. It does not wait.
func (p *Parent) Send(m ipc.Message) {
	p.mu.Lock()
	p.queue = append(p.queue, m)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run sends the messages in the queue. When it finds nil in the queue, it
// closes the channel and returns. It panics if a message breaks the protocol,
// because that is a bug in this program.
func (p *Parent) run() {
	for range p.wake {
		p.mu.Lock()
		list := p.queue
		p.queue = nil
		p.mu.Unlock()
		for _, m := range list {
			if m == nil {
				p.channel.Close()
				return
			}
			if err := ipc.IgnoreClosed(p.channel.Send(m)); err != nil {
				panic(err)
			}
		}
	}
}

// Close closes the channel after all earlier messages.
func (p *Parent) Close() { p.Send(nil) }
