package client

import (
	"encoding/binary"

	"schedrestd/rpc/message"
)

// Outcome is the result of a request to a daemon.
type Outcome uint8

// The outcomes.
const (
	OK          Outcome = iota
	NotCreated          // the request could not be created, for example because munged failed
	Unreachable         // no connection
	TimedOut            // no answer in time
	Broken              // the answer is missing, is incomplete or can't be understood
	Refused             // the daemon answered with an error number
)

// observe reports the beginning of a request to Config.Observe. It returns a
// function that reports the end of the request.
func (c *caller) observe(kind message.Type) func(*reply, *failure) {
	if c.cfg.Observe == nil {
		return func(*reply, *failure) {}
	}
	done := c.cfg.Observe(kind)
	return func(answer *reply, f *failure) { done(outcome(answer, f)) }
}

// reused reports a request that is not sent to Config.Reused.
func (c *caller) reused(kept bool) {
	if c.cfg.Reused != nil {
		c.cfg.Reused(kept)
	}
}

func outcome(answer *reply, f *failure) Outcome {
	switch {
	case f == nil && answer.kind == message.ResponseRC && len(answer.first) >= 4 && binary.BigEndian.Uint32(answer.first) != 0:
		return Refused
	case f == nil:
		return OK
	case f.stage == stageCreate:
		return NotCreated
	case f.stage == stageAnswered:
		return Refused
	case isTimeout(f.err):
		return TimedOut
	case f.stage == stageConnect:
		return Unreachable
	}
	return Broken
}
