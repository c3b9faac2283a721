package client

import (
	"context"
	"errors"
	"fmt"

	"schedrestd/internal/errs"
	"schedrestd/internal/origin"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// query sends one request and decodes the answer into body. The answer's type
// must be want.
func (c *Client) query(ctx context.Context, cred model.Credential, r request, want message.Type, body message.Body) error {
	return c.answerTo(ctx, cred, r, func(answer *reply) error { return c.daemons.read(answer, want, body) })
}

// answerTo sends one request and passes the answer to the function read. If r
// makes a change and its answer can't be understood, the error says that the
// outcome is unknown.
func (c *Client) answerTo(ctx context.Context, cred model.Credential, r request, read func(*reply) error) error {
	answer, err := c.ask(ctx, cred, r)
	if err != nil {
		return err
	}
	origin.From(ctx).Add(answer.age, answer.digest)
	answer.closeWhenDone(ctx)
	defer answer.release()
	err = read(answer)
	if !r.repeatable && errs.KindOf(err) == errs.BadAnswer && numberOf(err) == 0 {
		return c.daemons.outcomeUnknown(newFailure(stageDecode, err))
	}
	return err
}

// read decodes the body of an answer into body. The type of the answer must be
// want. If the answer is an error number instead, read returns the error with
// this number. If want is ResponseRC, body is nil, and only the number 0 means
// success.
func (g *daemons) read(answer *reply, want message.Type, body message.Body) error {
	if answer.kind == want && want != message.ResponseRC {
		return g.badAnswer(answer.decode(body))
	}
	if answer.kind == message.ResponseReroute { // the request was not carried out, and the gateway has no address for the cluster named in the answer
		target := "another cluster"
		var reroute message.Reroute
		if answer.decode(&reroute) == nil && reroute.Cluster != nil && reroute.Cluster.Name != "" {
			target = fmt.Sprintf("the cluster %q", reroute.Cluster.Name)
		}
		return errs.New(errs.Unsupported, "the %s refers the request to %s of the federation", g.kind, target).
			WithHint("send it to the gateway of that cluster")
	}
	rc, err := decodeRC(answer)
	switch {
	case err != nil:
		return g.badAnswer(err)
	case rc.Code != 0:
		return fault.Of(rc.Code, rc.Message)
	case want != message.ResponseRC:
		return g.badAnswer(fmt.Errorf("success without a message %d", want))
	}
	return nil
}

// unchanged returns errs.Unchanged if nothing has changed since q.Since. It
// compares the times as controllers do when they answer with lists.
func unchanged(last model.Time, q model.Query) error {
	if q.Since != 0 && last < q.Since {
		return fault.Of(fault.NoChange, "")
	}
	return nil
}

// decodeRC returns the error number from an answer that contains no requested
// data. If the answer also contains a message, decodeRC returns this too.
func decodeRC(answer *reply) (rc message.RCMessage, err error) {
	switch answer.kind {
	case message.ResponseRC:
		var short message.RC
		err = answer.decode(&short)
		rc.Code = short.Code
	case message.ResponseRCMessage:
		err = answer.decode(&rc)
	case message.ResponseJobArrayErrors: // tasks of an array had different results: use the first error
		var tasks message.JobArrayErrors
		err = answer.decode(&tasks)
		for _, e := range tasks.Errors {
			if e.Code != 0 {
				return message.RCMessage{Code: e.Code, Message: e.JobIDs}, err
			}
		}
	default:
		err = fmt.Errorf("message %d was not expected", answer.kind)
	}
	return rc, err
}

// badAnswer returns the error for an answer that can't be decoded, or nil if
// err is nil. If err comes from the function that receives the records, the
// answer is not at fault, and badAnswer returns the function's error unchanged.
func (g *daemons) badAnswer(err error) error {
	if wrapped, ok := errors.AsType[*callbackError](err); ok {
		return wrapped.err
	}
	return errs.Wrap(err, errs.BadAnswer, "the %s's answer can't be understood", g.kind)
}

// A callbackError wraps an error from the function that receives the records.
// It lets badAnswer distinguish that error from an error of the decoder.
type callbackError struct{ err error }

func (s *callbackError) Error() string { return s.err.Error() }

// wrapCallback returns a function that passes its argument to the function
// each, and wraps the error from each in a callbackError.
func wrapCallback[T any](each func(*T) error) func(*T) error {
	return func(element *T) error {
		if err := each(element); err != nil {
			return &callbackError{err}
		}
		return nil
	}
}

// numberOf returns Slurm's error number in err, or 0 if no daemon sent one.
func numberOf(err error) int {
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return e.Number
	}
	return 0
}
