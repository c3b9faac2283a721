package client

import (
	"context"
	"fmt"

	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// List asks for records. No slow reader holds the daemon: its whole answer is here
// before the first record is passed on.
func (a *Accounting) List(ctx context.Context, cred model.Credential, l model.Listing) error {
	switch f := l.Filter.(type) {
	case model.AccountFilter:
		return list(ctx, a, cred, question{message.AccountingGetAccounts, &message.GetAccounts{AccountFilter: f}, message.AccountingGotAccounts}, new(message.Accounts), l)
	case model.AccountingJobFilter:
		return list(ctx, a, cred, question{message.AccountingGetJobs, &message.GetAccountingJobs{AccountingJobFilter: f}, message.AccountingGotJobs}, new(message.AccountingJobs), l)
	case model.AssocFilter:
		return list(ctx, a, cred, question{message.AccountingGetAssocs, &message.GetAssociations{AssocFilter: f}, message.AccountingGotAssocs}, new(message.Associations), l)
	case model.ClusterFilter:
		return list(ctx, a, cred, question{message.AccountingGetClusters, &message.GetClusters{ClusterFilter: f}, message.AccountingGotClusters}, new(message.Clusters), l)
	case model.QOSFilter:
		return list(ctx, a, cred, question{message.AccountingGetQOS, &message.GetQOS{QOSFilter: f}, message.AccountingGotQOS}, new(message.QOSList), l)
	case model.TRESFilter:
		return list(ctx, a, cred, question{message.AccountingGetTRES, &message.GetTRES{TRESFilter: f}, message.AccountingGotTRES}, new(message.TRESList), l)
	case model.UserFilter:
		return list(ctx, a, cred, question{message.AccountingGetUsers, &message.GetUsers{UserFilter: f}, message.AccountingGotUsers}, new(message.Users), l)
	case model.WCKeyFilter:
		return list(ctx, a, cred, question{message.AccountingGetWCKeys, &message.GetWCKeys{WCKeyFilter: f}, message.AccountingGotWCKeys}, new(message.WCKeys), l)
	}
	return fmt.Errorf("list records: no request for %T", l.Filter)
}

// Records is List for a caller that knows the type of the records.
func Records[T any](ctx context.Context, a *Accounting, cred model.Credential, filter model.Filter[T], each func(*T) error) error {
	return a.List(ctx, cred, model.List(filter, each))
}

// question is a message for the accounting daemon, and the type of its answer.
type question struct {
	kind message.Type
	body message.Body
	want message.Type
}

// answerOf is the body of an answer with records.
type answerOf[T any] interface {
	message.Body
	List() *message.Listed[T]
}

// list asks for records and passes them on after the session ended. It asks
// another daemon only before the first record was passed on.
func list[T any](ctx context.Context, a *Accounting, cred model.Credential, q question, answer answerOf[T], l model.Listing) error {
	room := a.room(cred)
	if err := a.expect(ctx, room, q.kind); err != nil {
		return err
	}
	defer func() { room.less(room.has) }()
	var got *reply
	err := a.account(ctx, cred, a.session, func(s *session) *failure {
		b, err := message.EncodePersistent(s.version, q.kind, q.body)
		if err != nil {
			return failed(unmade, err)
		}
		var f *failure
		got, f = s.fetch(b, q.want, room)
		return f
	})
	if err != nil {
		return err
	}
	a.usual.note(q.kind, got, a.now())
	got.follow(ctx)
	defer got.release()
	listed := answer.List()
	listed.Records.Each = pass(l.Each.(func(*T) error))
	if err := got.decode(answer); err != nil {
		return a.bad(err)
	}
	if listed.Code != 0 {
		return fault.Of(listed.Code, "")
	}
	return nil
}
