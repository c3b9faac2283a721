package process

import (
	"sync"

	"schedrestd/ipc"
)

// Parent sends messages to the parent process. They wait in a queue, so that
// this process never waits for the parent while the parent waits for it.
// Several goroutines may use one Parent.
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

// run sends the messages in the queue, until it finds nil there. It panics if a
// message breaks the protocol, because that is a bug of this program.
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
