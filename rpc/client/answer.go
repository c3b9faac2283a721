package client

import (
	"context"
	"errors"
	"fmt"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// query sends one request and decodes its answer, which must be of type want,
// into body.
func (c *Client) query(ctx context.Context, cred model.Credential, r request, want message.Type, body message.Body) error {
	return c.answerTo(ctx, cred, r, func(answer *reply) error { return c.daemons.read(answer, want, body) })
}

// answerTo sends one request and passes the answer to read. If r makes a change
// and its answer can't be understood, the error says that the outcome is
// unknown.
func (c *Client) answerTo(ctx context.Context, cred model.Credential, r request, read func(*reply) error) error {
	limited, cancel := c.limit(ctx)
	answer, err := c.do(limited, cred, r)
	cancel()
	if err != nil {
		return err
	}
	answer.follow(ctx)
	defer answer.release()
	err = read(answer)
	if !r.repeatable && errs.KindOf(err) == errs.BadAnswer && numberOf(err) == 0 {
		return c.daemons.unknown(failed(garbled, err)) // the outcome of the change is unknown
	}
	return err
}

// read reads an answer. It decodes a body of type want into body. If the answer
// is an error number, read returns the error with this number. If want is
// ResponseRC, only the number 0 is expected, and body is nil.
func (g *daemons) read(answer *reply, want message.Type, body message.Body) error {
	if answer.kind == want && want != message.ResponseRC {
		return g.bad(answer.decode(body))
	}
	if answer.kind == message.ResponseReroute { // nothing was done, and the gateway has no address for the other cluster
		which := "another cluster"
		var where message.Reroute
		if answer.decode(&where) == nil && where.Cluster != nil && where.Cluster.Name != "" {
			which = fmt.Sprintf("the cluster %q", where.Cluster.Name)
		}
		return errs.New(errs.Unsupported, "the %s says that %s of the federation has to be asked", g.what, which)
	}
	rc, err := verdict(answer)
	switch {
	case err != nil:
		return g.bad(err)
	case rc.Code != 0:
		return fault.Of(rc.Code, rc.Message)
	case want != message.ResponseRC:
		return g.bad(fmt.Errorf("success without a message %d", want))
	}
	return nil
}

// unchanged returns errs.Unchanged if nothing has changed since q.Since. It
// compares times as controllers do for lists.
func unchanged(last model.Time, q model.Query) error {
	if q.Since != 0 && last < q.Since {
		return fault.Of(fault.NoChange, "")
	}
	return nil
}

// verdict returns the error number of an answer that contains only a number.
func verdict(answer *reply) (rc message.RCMessage, err error) {
	switch answer.kind {
	case message.ResponseRC:
		var short message.RC
		err = answer.decode(&short)
		rc.Code = short.Code
	case message.ResponseRCMessage:
		err = answer.decode(&rc)
	case message.ResponseJobArrayErrors: // tasks of an array had different results: use the first error
		var each message.JobArrayErrors
		err = answer.decode(&each)
		for _, e := range each.Errors {
			if e.Code != 0 {
				return message.RCMessage{Code: e.Code, Message: e.JobIDs}, err
			}
		}
	default:
		err = fmt.Errorf("message %d was not expected", answer.kind)
	}
	return rc, err
}

// bad returns the error for an answer that can't be decoded, or nil if err is
// nil. If err comes from the function that receives the records, bad returns it
// unchanged.
func (g *daemons) bad(err error) error {
	if stop, ok := errors.AsType[*stopped](err); ok {
		return stop.err
	}
	return errs.Wrap(err, errs.BadAnswer, "the %s's answer can't be understood", g.what)
}

// stopped carries an error through the decoder unchanged. The error comes from
// the function that receives the records.
type stopped struct{ err error }

func (s *stopped) Error() string { return s.err.Error() }

// pass returns a receiver for a stream. The receiver calls the function each
// for every element, and returns its errors in such a form that they pass
// through the decoder unchanged.
func pass[T any](each func(*T) error) func(*T) error {
	return func(element *T) error {
		if err := each(element); err != nil {
			return &stopped{err}
		}
		return nil
	}
}

// numberOf returns Slurm's error number of err, or 0 if no daemon sent one.
func numberOf(err error) int {
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return e.Number
	}
	return 0
}
