package broker

import (
	"context"

	"golang.org/x/sys/unix"

	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// The type dispatcher stands for the dispatcher process, from which the worker
// requests descriptors.
type dispatcher struct {
	send     func(ipc.Message, ...int) error
	requests *semaphore.Semaphore[string] // keys are users
	pending  pending[ipc.Received]
}

func newDispatcher(send func(ipc.Message, ...int) error) *dispatcher {
	return &dispatcher{send: send, requests: semaphore.New[string](limit.DispatcherQuestions)}
}

// ask sends one request to the dispatcher and waits for the answer. The
// function question returns the message for the request with the number id. The
// caller must close the descriptors in the answer.
func (d *dispatcher) ask(ctx context.Context, question func(id uint64) ipc.Message) (ipc.Received, error) {
	place, err := d.requests.Acquire(ctx, semaphore.KeyFrom(ctx))
	if err != nil {
		return ipc.Received{}, err
	}
	defer place.Release()
	id, answer := d.pending.register()
	err = d.send(question(id))
	if err == nil {
		select {
		case r := <-answer:
			return r, nil
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	late, _ := d.pending.forget(id, answer)
	closeAll(late.FDs)
	return ipc.Received{}, err
}

// deliver passes an answer to the goroutine that waits for it. If no goroutine
// waits for it, deliver closes the answer's descriptors.
func (d *dispatcher) deliver(r ipc.Received) {
	if !d.pending.answer(answeredID(r.Message), r) {
		closeAll(r.FDs)
	}
}

// closeAll closes the descriptors of an answer that is no longer needed.
func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

func answeredID(m ipc.Message) uint64 {
	switch m := m.(type) {
	case *work.Dialed:
		return m.ID
	case *work.DialFailed:
		return m.ID
	}
	return 0
}
