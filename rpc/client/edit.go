package client

import (
	"context"
	"fmt"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Edit calls the function f, which changes records, in one transaction. If f
// returns nil, Edit commits the changes. Otherwise it rolls them back and
// returns f's error. An error with Code errs.OutcomeUnknown means that the
// daemon did not answer the request to commit. If the session with the daemon
// fails before that request, nothing is committed, and Edit may call f again in
// another session. It does not do so if the daemon is too slow, because then it
// may still be making the change.
//
// Once a change has been sent, the transaction does not end when ctx does: the
// daemon may make the change in any case, and a caller that keeps a log has to
// learn the outcome.
func (a *Accounting) Edit(ctx context.Context, cred model.Credential, f func(model.Editor) error) error {
	var fErr error
	isUnknown := false
	err := a.call(ctx, cred, func(s *session) *failure {
		e := &edit{a: a, s: s, detached: func() {}}
		defer func() { e.detached() }()
		fErr = f(e)
		switch {
		case e.failure != nil:
			s.tainted = e.changed
			if e.changed && isTimeout(e.failure.err) {
				isUnknown, e.failure.final = true, true
			}
			return e.failure
		case fErr != nil || !e.changed:
			if e.changed {
				s.tainted = s.endTransaction(rollback) != nil
			}
			return nil
		}
		failure := s.endTransaction(commit)
		if failure != nil && failure.stage > stageSend && failure.stage != stageAnswered {
			isUnknown = true
			failure.final = true
		}
		s.tainted = failure != nil
		return failure
	})
	switch {
	case isUnknown:
		return a.unknownEdit(err)
	case err != nil:
		return err
	}
	return fErr
}

// unknownEdit returns the error for changes whose outcome is unknown.
func (a *Accounting) unknownEdit(err error) error {
	return &errs.Error{Kind: errs.BadAnswer, Code: errs.OutcomeUnknown, Err: err,
		Message: fmt.Sprintf("the %s did not answer: the changes may have been saved", a.kind),
		Hint:    "check the records before you send the request again"}
}

// edit is the transaction of a session.
type edit struct {
	a       *Accounting
	s       *session
	changed bool
	failure *failure // of the session; nil while it works

	detached func() // ends what turn.detach has begun
}

// List requests records within the transaction.
func (e *edit) List(l model.Listing) error {
	q, err := newListRequest(l)
	if err != nil {
		return err
	}
	answer, err := e.send(q.question)
	if err != nil {
		return err
	}
	defer answer.release()
	err = e.a.read(q, answer)
	if errs.KindOf(err) == errs.BadAnswer && numberOf(err) == 0 {
		e.failure = newFailure(stageDecode, err)
	}
	return err
}

// Change makes a change within the transaction.
func (e *edit) Change(change any) ([]string, error) {
	q, err := changeRequest(change)
	if err != nil {
		return nil, err
	}
	if e.failure == nil && e.s.version >= q.since() { // otherwise send refuses the message
		if f := checkCarried(e.a.kind, e.s.version, q.body); f != nil {
			return nil, e.a.report([]*failure{f})
		}
	}
	if !e.changed {
		e.begin()
	}
	answer, err := e.send(q)
	if numberOf(err) == fault.NoChange {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer answer.release()
	if q.want == message.AccountingRC {
		var rc message.PersistRC
		if err := answer.decode(&rc); err != nil || rc.Comment == "" {
			return nil, e.badAnswer(err)
		}
		return []string{rc.Comment}, nil
	}
	if answer.kind == message.AccountingRC {
		return nil, nil
	}
	var names message.Names
	if err := answer.decode(&names); err != nil {
		return nil, e.badAnswer(err)
	}
	switch names.Code {
	case 0:
		return names.Records.List, nil
	case fault.NoChange:
		return nil, nil
	}
	return names.Records.List, fault.Of(names.Code, "")
}

// begin records that a change is about to be sent. From then on, the transaction
// continues even if the client leaves.
func (e *edit) begin() {
	e.changed = true
	e.detached = e.s.turn.detach()
	if e.failure == nil && !e.s.detach() {
		e.changed = false
		e.failure = newFailure(stageSend, fmt.Errorf("send request: %w", context.Cause(e.s.ctx)))
	}
}

// badAnswer returns the error for an answer that can't be understood, and makes
// the transaction fail. If err is nil, it does nothing.
func (e *edit) badAnswer(err error) error {
	if err == nil {
		return nil
	}
	e.failure = newFailure(stageDecode, err)
	return e.a.badAnswer(err)
}

// send sends a request of the transaction and returns the answer. If the daemon
// answers with an error, the transaction continues, unless the daemon refused
// the credential. Any other failure ends the transaction.
func (e *edit) send(q question) (*reply, error) {
	if e.failure != nil {
		return nil, e.a.report([]*failure{e.failure})
	}
	b, f := q.encode(e.s)
	var answer *reply
	if f == nil {
		answer, f = e.s.fetch(b, q.want, e.s.allowance(), request{whole: true})
	}
	if f == nil {
		return answer, nil
	}
	if f.stage != stageAnswered || errs.KindOf(f.err) == errs.Unauthenticated {
		e.failure = f
	}
	return nil, e.a.report([]*failure{f})
}

// Ways to end a transaction.
const (
	rollback uint16 = 0
	commit   uint16 = 1
)

func (s *session) endTransaction(end uint16) *failure {
	return s.call(message.AccountingFini, &message.AccountingEnd{Commit: end}, message.AccountingRC, nil)
}

// changeRequest returns the request that makes a change.
func changeRequest(change any) (question, error) {
	switch ch := change.(type) {
	case model.Add[model.Account]:
		return addRequest(message.AccountingAddAccounts, new(message.Accounts), ch.Records), nil
	case model.Add[model.Association]:
		return addRequest(message.AccountingAddAssocs, new(message.Associations), ch.Records), nil
	case model.Add[model.Cluster]:
		return addRequest(message.AccountingAddClusters, new(message.Clusters), ch.Records), nil
	case model.Add[model.QOS]:
		return addRequest(message.AccountingAddQOS, new(message.QOSList), ch.Records), nil
	case model.Add[model.User]:
		return addRequest(message.AccountingAddUsers, new(message.Users), ch.Records), nil
	case model.Add[model.WCKey]:
		return addRequest(message.AccountingAddWCKeys, new(message.WCKeys), ch.Records), nil
	case model.AddCoordinators:
		return question{message.AccountingAddCoords, coordinators(ch.Accounts, ch.Users), message.AccountingRC}, nil
	case model.RemoveCoordinators:
		return question{message.AccountingRemoveCoords, coordinators(ch.Accounts, ch.Users), message.AccountingGotList}, nil
	case model.AddAccountsWithAssocs:
		return question{message.AccountingAddAccountsTo, &message.AddAccountsTo{AddAccountsWithAssocs: ch}, message.AccountingRC}, nil
	case model.AddUsersWithAssocs:
		return question{message.AccountingAddUsersTo, &message.AddUsersTo{AddUsersWithAssocs: ch}, message.AccountingRC}, nil
	}
	kind, body, err := modifyRequest(change)
	return question{kind, body, message.AccountingGotList}, err
}

// modifyRequest returns the request that modifies or removes records.
func modifyRequest(change any) (message.Type, message.Body, error) {
	switch ch := change.(type) {
	case model.Modify[model.Account]:
		filter := message.GetAccounts{AccountFilter: ch.Filter.(model.AccountFilter)}
		return message.AccountingModifyAccounts, &message.ModifyAccounts{Filter: filter, Record: ch.Record}, nil
	case model.Modify[model.Association]:
		filter := message.GetAssociations{AssocFilter: ch.Filter.(model.AssocFilter)}
		return message.AccountingModifyAssocs, &message.ModifyAssociations{Filter: filter, Record: ch.Record}, nil
	case model.Modify[model.QOS]:
		filter := message.GetQOS{QOSFilter: ch.Filter.(model.QOSFilter)}
		return message.AccountingModifyQOS, &message.ModifyQOS{Filter: filter, Record: ch.Record}, nil
	case model.Modify[model.User]:
		filter := message.GetUsers{UserFilter: ch.Filter.(model.UserFilter)}
		return message.AccountingModifyUsers, &message.ModifyUsers{Filter: filter, Record: ch.Record}, nil
	case model.Modify[model.AccountingJob]:
		filter := message.GetAccountingJobs{AccountingJobFilter: ch.Filter.(model.AccountingJobFilter)}
		return message.AccountingModifyJobs, &message.ModifyJobs{Filter: filter, Record: ch.Record}, nil
	case model.Remove[model.Account]:
		return message.AccountingRemoveAccounts, &message.GetAccounts{AccountFilter: ch.Filter.(model.AccountFilter)}, nil
	case model.Remove[model.Association]:
		return message.AccountingRemoveAssocs, &message.GetAssociations{AssocFilter: ch.Filter.(model.AssocFilter)}, nil
	case model.Remove[model.Cluster]:
		return message.AccountingRemoveClusters, &message.GetClusters{ClusterFilter: ch.Filter.(model.ClusterFilter)}, nil
	case model.Remove[model.QOS]:
		return message.AccountingRemoveQOS, &message.GetQOS{QOSFilter: ch.Filter.(model.QOSFilter)}, nil
	case model.Remove[model.User]:
		return message.AccountingRemoveUsers, &message.GetUsers{UserFilter: ch.Filter.(model.UserFilter)}, nil
	case model.Remove[model.WCKey]:
		return message.AccountingRemoveWCKeys, &message.GetWCKeys{WCKeyFilter: ch.Filter.(model.WCKeyFilter)}, nil
	}
	return 0, nil, fmt.Errorf("change records: no request for %T", change)
}

// addRequest returns the request that adds records. Its body is the list of
// these records, in the same form as in an answer.
func addRequest[T any](kind message.Type, list listBody[T], records []T) question {
	list.List().Records = codec.Stream[T]{List: records}
	return question{kind, list, message.AccountingRC}
}

func coordinators(accounts, users []string) *message.Coordinators {
	filter := model.UserFilter{Assoc: model.AssocFilter{Users: users}}
	return &message.Coordinators{Accounts: accounts, Users: message.GetUsers{UserFilter: filter}}
}
