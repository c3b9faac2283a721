package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Jobs gives each job that filter lets through to each, one at a time; a job is valid during
// the call only. An error of each ends it and is returned as it is. The daemon is not held by
// who takes his time: its answer is here before the first call. So it is in all that follow.
func (a *Accounting) Jobs(ctx context.Context, cred model.Credential, filter model.AccountingJobFilter, each func(*model.AccountingJob) error) error {
	var answer message.AccountingJobs
	q := question{message.AccountingGetJobs, &message.GetAccountingJobs{AccountingJobFilter: filter}, message.AccountingGotJobs}
	return list(ctx, a, cred, q, &answer, &answer.Listed, each)
}

// Associations gives each association to each, as Jobs does.
func (a *Accounting) Associations(ctx context.Context, cred model.Credential, filter model.AssocFilter, each func(*model.Association) error) error {
	var answer message.Associations
	q := question{message.AccountingGetAssocs, &message.GetAssociations{AssocFilter: filter}, message.AccountingGotAssocs}
	return list(ctx, a, cred, q, &answer, &answer.Listed, each)
}

// Accounts gives each account to each, as Jobs does.
func (a *Accounting) Accounts(ctx context.Context, cred model.Credential, filter model.AccountFilter, each func(*model.Account) error) error {
	var answer message.Accounts
	q := question{message.AccountingGetAccounts, &message.GetAccounts{AccountFilter: filter}, message.AccountingGotAccounts}
	return list(ctx, a, cred, q, &answer, &answer.Listed, each)
}

// Users gives each user to each, as Jobs does.
func (a *Accounting) Users(ctx context.Context, cred model.Credential, filter model.UserFilter, each func(*model.User) error) error {
	var answer message.Users
	q := question{message.AccountingGetUsers, &message.GetUsers{UserFilter: filter}, message.AccountingGotUsers}
	return list(ctx, a, cred, q, &answer, &answer.Listed, each)
}

// QOS gives each quality of service to each, as Jobs does.
func (a *Accounting) QOS(ctx context.Context, cred model.Credential, filter model.QOSFilter, each func(*model.QOS) error) error {
	var answer message.QOSList
	q := question{message.AccountingGetQOS, &message.GetQOS{QOSFilter: filter}, message.AccountingGotQOS}
	return list(ctx, a, cred, q, &answer, &answer.Listed, each)
}

// Clusters gives each cluster to each, as Jobs does.
func (a *Accounting) Clusters(ctx context.Context, cred model.Credential, filter model.ClusterFilter, each func(*model.Cluster) error) error {
	var answer message.Clusters
	q := question{message.AccountingGetClusters, &message.GetClusters{ClusterFilter: filter}, message.AccountingGotClusters}
	return list(ctx, a, cred, q, &answer, &answer.Listed, each)
}

// TRES gives each trackable resource to each, as Jobs does.
func (a *Accounting) TRES(ctx context.Context, cred model.Credential, filter model.TRESFilter, each func(*model.TRES) error) error {
	var answer message.TRESList
	q := question{message.AccountingGetTRES, &message.GetTRES{TRESFilter: filter}, message.AccountingGotTRES}
	return list(ctx, a, cred, q, &answer, &answer.Listed, each)
}

// question is a message for the accounting daemon, and the type of its answer.
type question struct {
	kind message.Type
	body message.Body
	want message.Type
}

// list asks for records, and hands them on when the session is over: another daemon is asked
// only as long as nobody has been given any. Listed is the part of answer with the records.
func list[T any](ctx context.Context, a *Accounting, cred model.Credential, q question,
	answer message.Body, listed *message.Listed[T], each func(*T) error) error {
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
	listed.Records.Each = pass(each)
	if err := got.decode(answer); err != nil {
		return a.bad(err)
	}
	if listed.Code != 0 {
		return fault.Of(listed.Code, "")
	}
	return nil
}
