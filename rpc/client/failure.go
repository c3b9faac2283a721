package client

import (
	"context"
	"errors"
	"fmt"
	"os"

	"schedrestd/errs"
	"schedrestd/rpc/codec"
)

// stage is the last stage that an exchange reached before it failed.
type stage uint8

const (
	unmade     stage = iota // the message could not be created (munged failed, for example): no daemon is at fault
	unreached               // no connection
	unsent                  // the daemon can't have received the whole request
	unspoken                // the daemon answered that it does not support this protocol version
	silent                  // sent, then closed without an answer: an old release refused the version, or the daemon crashed
	unanswered              // sent, but the answer is missing or incomplete
	garbled                 // the answer can't be understood
	answered                // the daemon answered with an error number
)

// failure describes an exchange that returned no usable answer.
type failure struct {
	stage   stage
	version codec.Version // for unspoken: version that the daemon seems to speak; 0 if unknown
	probe   bool          // the probe failed, so the request itself was never sent
	final   bool          // the request must not be sent again, to any daemon
	wants   int           // length of an answer for which there was no memory; stage then has no meaning
	err     error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// undone reports whether the daemon can't have carried out the request.
func (f *failure) undone() bool { return f.probe || f.stage <= unspoken }

func failed(s stage, err error) *failure { return &failure{stage: s, err: err} }

func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// timedOut reports whether err means that a daemon was reached but did not
// answer in time.
func timedOut(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.stage > unreached && late(f.err)
}

// report returns the error for the failures of g's daemons. The failure that
// reached the latest stage determines the error.
func (g *daemons) report(tried []*failure) error {
	if len(tried) == 0 {
		return errs.New(errs.Unsupported, "no %s is configured", g.what)
	}
	worst, all := tried[0], []error{}
	for _, f := range tried {
		if f.stage > worst.stage {
			worst = f
		}
		all = append(all, f)
	}
	own, ok := errors.AsType[*errs.Error](worst.err)
	if ok && len(tried) == 1 {
		return own
	}
	e := &errs.Error{Err: errors.Join(all...)}
	if ok {
		e.Kind, e.Number, e.Message, e.Hint = own.Kind, own.Number, own.Message, own.Hint
		return e
	}
	switch {
	case worst.stage == unmade:
		e.Kind, e.Message = errs.Internal, "the request can't be put into words"
	case worst.stage == unspoken:
		e.Kind, e.Message = errs.Unsupported, fmt.Sprintf("the %s speaks none of the protocols of Slurm %s to %s",
			g.what, codec.Oldest.Release(), codec.Newest.Release())
	case worst.stage == unreached:
		e.Kind, e.Message = errs.Unavailable, fmt.Sprintf("the %s can't be reached", g.what)
	case late(worst.err):
		e.Kind, e.Message = errs.Timeout, fmt.Sprintf("the %s does not answer in time", g.what)
	case worst.stage == garbled:
		e.Kind, e.Message = errs.BadAnswer, fmt.Sprintf("the %s's answer can't be understood", g.what)
	default:
		e.Kind, e.Message = errs.BadAnswer, fmt.Sprintf("the %s closed the connection without a whole answer", g.what)
	}
	return e
}

// unknown returns the error for a request that was sent but not answered, and
// must not be repeated. It is never a timeout, because clients retry after a
// timeout.
func (g *daemons) unknown(f *failure) error {
	return &errs.Error{Kind: errs.BadAnswer, Code: errs.OutcomeUnknown, Err: f,
		Message: fmt.Sprintf("the request was sent, but the %s's answer did not come: it may have been carried out", g.what),
		Hint:    "look before you send it again: a submitted job is found by its name in the list of jobs"}
}
