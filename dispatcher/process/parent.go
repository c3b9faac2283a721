package process

import (
	"sync"

	"schedrestd/ipc"
)

// Parent sends messages to the parent. Messages wait in a queue. Otherwise
// goroutines of this process could wait for the parent while the parent waits
// for this process. Several goroutines may use one Parent.
type Parent struct {
	channel *ipc.Channel
	wake    chan struct{} // gets a token when the queue is no longer empty

	mu    sync.Mutex // guards queue
	queue []ipc.Message
}

// NewParent returns the parent at the other end of channel.
func NewParent(channel *ipc.Channel) *Parent {
	p := &Parent{channel: channel, wake: make(chan struct{}, 1)}
	go p.run()
	return p
}

// Send sends m after all earlier messages.
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
// closes the channel. A message that breaks the protocol is a bug of this
// program.
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
