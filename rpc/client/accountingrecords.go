package client

import (
	"context"
	"fmt"
	"reflect"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// List requests records and calls l.Each with every record. Normally it reads
// the whole answer first, so that a slow client does not block the daemon. If
// the answer is longer than the memory budget, List calls l.Each while the
// answer arrives.
func (a *Accounting) List(ctx context.Context, cred model.Credential, l model.Listing) error {
	q, err := newListRequest(l)
	if err != nil {
		return err
	}
	return a.records(ctx, cred, q)
}

// newListRequest returns the request for the records that l selects.
func newListRequest(l model.Listing) (listRequest, error) {
	list := message.RecordLists[reflect.TypeOf(l.Filter)]
	if list == nil {
		return listRequest{}, fmt.Errorf("list records: no request for %T", l.Filter)
	}
	answer, code := list.Answer(l.Each, func(err error) error { return &callbackError{err} })
	return listRequest{question{list.Get, list.Request(l.Filter), list.Got}, answer, code}, nil
}

// Records requests records and calls each(r) for every record r. It works like
// List, and is for callers that know the type of the records.
func Records[T any](ctx context.Context, a *Accounting, cred model.Credential, filter model.Filter[T], each func(*T) error) error {
	return a.List(ctx, cred, model.List(filter, each))
}

// A question is a message to the accounting daemon, together with the type of
// the expected answer.
type question struct {
	kind message.Type
	body message.Body
	want message.Type
}

// since returns the oldest protocol version that has the message.
func (q *question) since() codec.Version {
	switch q.kind {
	case message.AccountingAddAccountsTo, message.AccountingAddUsersTo:
		return codec.V2311
	case message.AccountingGetConf:
		return codec.V2605
	}
	if g, ok := q.body.(*message.GetAssociations); ok && g.Flags&model.AssocQOSUsage != 0 {
		return codec.V2411 // an older protocol has no place for the flag, and the answer would be the usage in all qualities of service
	}
	return message.ListSince(q.kind)
}

// encode encodes q as a message for s. It fails if the daemon's version does
// not have this message.
func (q *question) encode(s *session) ([]byte, *failure) {
	if page, ok := q.body.(*message.GetAccountingJobPage); ok && !s.pages {
		q = &question{message.AccountingGetJobs, &message.GetAccountingJobs{AccountingJobFilter: page.AccountingJobFilter}, q.want}
	}
	if since := q.since(); s.version < since {
		return nil, newFailure(stageAnswered, errs.New(errs.Unsupported,
			"the accounting daemon speaks the protocol of Slurm %s, but the request needs that of %s or later", s.version.Release(), since.Release()))
	}
	b, err := message.EncodePersistent(s.version, q.kind, q.body)
	if err != nil {
		return nil, newFailure(stageCreate, err)
	}
	return b, nil
}

// listBody is a message that contains records of type T.
type listBody[T any] interface {
	message.Body
	List() *message.ListResponse[T]
}

// A listRequest is a question whose answer contains records. It also holds the
// variable into which the answer is decoded.
type listRequest struct {
	question
	answer message.Body
	code   *uint32 // error number in the answer
}

// read decodes an answer and passes its records to the caller's function.
func (a *Accounting) read(q listRequest, answer *reply) error {
	if err := answer.decode(q.answer); err != nil {
		return a.badAnswer(err)
	}
	if *q.code != 0 {
		return fault.Of(*q.code, "")
	}
	return nil
}

// records sends q and passes the records in the answer to the caller's
// function. After the first record has been passed on, it tries no other
// daemon. When the whole answer has been read, other requests can use the
// session.
func (a *Accounting) records(ctx context.Context, cred model.Credential, q listRequest) error {
	var answer *reply
	err := a.call(ctx, cred, func(s *session) *failure {
		b, f := q.encode(s)
		if f != nil {
			return f
		}
		answer, f = s.fetch(b, q.want, s.allowance(), request{kind: q.kind})
		return f
	})
	if err != nil {
		return err
	}
	answer.closeWhenDone(ctx)
	defer answer.release()
	return a.read(q, answer)
}
