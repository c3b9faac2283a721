package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"schedrestd/internal/errs"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
)

// stage is how far an exchange got before it failed.
type stage uint8

const (
	stageCreate   stage = iota // the message could not be created (munged failed, for example): no daemon is at fault
	stageConnect               // no connection
	stageSend                  // the daemon can't have received the whole request
	stageVersion               // the daemon does not support this protocol version
	stageClosed                // the request was sent, but the connection closed without an answer: an old release refused the version, or the daemon crashed
	stageReceive               // the request was sent, but the answer is missing or incomplete
	stageDecode                // the answer can't be understood
	stageAnswered              // the daemon answered with an error number
)

// A failure describes an exchange that produced no usable answer.
type failure struct {
	stage   stage
	version codec.Version // with stageVersion: version that the daemon seems to speak; 0 if unknown
	probe   bool          // the probe failed, so the request itself was never sent
	final   bool          // the request must not be sent again, to any daemon
	err     error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// notExecuted reports whether it is certain that the daemon has not carried out
// the request.
func (f *failure) notExecuted() bool { return f.probe || f.stage <= stageVersion }

func newFailure(s stage, err error) *failure { return &failure{stage: s, err: err} }

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// timedOut reports whether err means that a daemon was reached but did not
// answer in time.
func timedOut(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.stage > stageConnect && isTimeout(f.err)
}

// report returns one error for all failures of the daemons. The error describes
// the failure of the exchange that got furthest.
func (c *caller) report(failures []*failure) error {
	if len(failures) == 0 {
		return errs.New(errs.Unsupported, "no %s is configured", c.kind)
	}
	worst, list := failures[0], []error{}
	for _, f := range failures {
		if f.stage > worst.stage {
			worst = f
		}
		list = append(list, f)
	}
	cause, ok := errors.AsType[*errs.Error](worst.err)
	if ok && len(failures) == 1 {
		return cause
	}
	e := &errs.Error{Err: errors.Join(list...)}
	if ok {
		e.Kind, e.Number, e.Message, e.Hint = cause.Kind, cause.Number, cause.Message, cause.Hint
		return e
	}
	switch {
	case worst.stage == stageCreate:
		e.Kind, e.Message = errs.Internal, "the request can't be encoded"
	case worst.stage == stageVersion:
		e.Kind, e.Message = errs.Unsupported, fmt.Sprintf("the %s speaks none of the protocols of Slurm %s to %s",
			c.kind, codec.Oldest.Release(), codec.Newest.Release())
	case worst.stage == stageConnect:
		e.Kind, e.Message = errs.Unavailable, fmt.Sprintf("the %s can't be reached", c.kind)
		if c.kind == accountingDaemon {
			e.Number = fault.Database
		}
	case isTimeout(worst.err):
		e.Kind, e.Message = errs.Timeout, fmt.Sprintf("the %s does not answer in time", c.kind)
	case worst.stage == stageDecode:
		e.Kind, e.Message = errs.BadAnswer, fmt.Sprintf("the %s's answer can't be understood", c.kind)
	default:
		e.Kind, e.Message = errs.BadAnswer, fmt.Sprintf("the %s closed the connection before its answer was complete", c.kind)
	}
	// A slurmdbd with TLS takes a plain request for the beginning of a handshake,
	// and waits for the rest.
	if (worst.stage == stageClosed || worst.stage == stageReceive) && c.cfg.TLS == nil && !slices.ContainsFunc(c.list, (*daemon).hasAnswered) {
		e.Hint = fault.TLSHint
	}
	return e
}

// outcomeUnknown returns the error for a request that was sent, was not
// answered, and must not be repeated. Clients retry after a timeout, so the
// kind of this error is never Timeout.
func (g *daemons) outcomeUnknown(f *failure) error {
	return &errs.Error{Kind: errs.BadAnswer, Code: errs.OutcomeUnknown, Err: f,
		Message: fmt.Sprintf("the %s did not answer the request, which may have been carried out", g.kind),
		Hint:    "check the result before you send the request again; the list of jobs shows a submitted job by its name"}
}
