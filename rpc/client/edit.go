package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Limits on a transaction that starts again. The daemon's database gives a
// transaction up when another client's transaction gets in its way, and that one
// is over soon. So the first pauses are short.
const (
	maxEditAttempts = 10
	firstPause      = 20 * time.Millisecond
	longestPause    = time.Second
)

// Edit calls the function f, which changes records, in one transaction. If f
// returns nil, Edit commits the changes. Otherwise it rolls them back and
// returns f's error. An error with Code errs.OutcomeUnknown means that the
// daemon did not answer, so it may have made the changes or may still make them.
//
// Once a change has been sent, the transaction does not end when ctx does: the
// daemon may make the change in any case, and a caller that keeps a log has to
// learn the outcome.
//
// If the daemon or its database gives the transaction up before the request to
// commit, or f returns model.ErrRestart, nothing is committed, and Edit calls f
// again in a new transaction, after a pause. If this fails several times, or for
// longer than a call may last, the error is of kind errs.Unavailable.
func (a *Accounting) Edit(ctx context.Context, cred model.Credential, f func(model.Editor) error) error {
	start, pause := time.Now(), firstPause
	for attempt := 1; ; attempt++ {
		restart, err := a.editOnce(ctx, cred, f)
		if !restart {
			return err
		}
		if attempt < maxEditAttempts && time.Since(start) < a.cfg.LongTimeout && wait(ctx, pause/2+rand.N(pause)) {
			pause = min(2*pause, longestPause)
			continue
		}
		return &errs.Error{Kind: errs.Unavailable, Err: err, Hint: "send the request again later",
			Message: fmt.Sprintf("the %s gave up the changes, because others changed records at the same time or its database failed: nothing was changed", a.kind)}
	}
}

// wait waits for the duration d. It returns false if ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// editOnce calls f in a transaction, and ends that transaction. If restart is
// true, nothing was committed, and the same changes may succeed in a new
// transaction.
func (a *Accounting) editOnce(ctx context.Context, cred model.Credential, f func(model.Editor) error) (restart bool, err error) {
	var fErr error
	var lost *failure // of the session, before the request to commit
	isUnknown := false
	err = a.call(ctx, cred, func(s *session) *failure {
		e := &edit{a: a, s: s, detached: func() {}}
		defer func() { e.detached() }()
		fErr, lost, restart = f(e), nil, false
		switch {
		case e.failure != nil:
			s.tainted = e.changed
			lost = e.failure
			if e.changed && isTimeout(e.failure.err) {
				isUnknown, e.failure.final = true, true
			}
			return e.failure
		case e.gaveUp != nil:
			s.tainted = s.endTransaction(rollback) != nil
			restart, fErr = true, e.gaveUp
			return nil
		case fErr != nil || !e.changed:
			if e.changed {
				s.tainted = s.endTransaction(rollback) != nil
			}
			restart = errors.Is(fErr, model.ErrRestart)
			return nil
		}
		failure := s.endTransaction(commit)
		if failure != nil && failure.stage > stageSend && failure.stage != stageAnswered {
			isUnknown = true
			failure.final = true
		}
		if failure != nil && gaveUp(failure) { // its connection to the database was lost, and the transaction with it
			s.tainted, restart, fErr = true, true, failure.err
			return nil
		}
		s.tainted = failure != nil
		return failure
	})
	switch {
	case isUnknown:
		return false, a.unknownEdit(err)
	case err != nil: // slurmdbd exits at some errors of its database
		return lost != nil && closedByDaemon(lost), err
	}
	return restart, fErr
}

// gaveUp reports whether f is an answer to a change that means that the daemon's
// database gave up: a return code where a list is due, or an error
// number that no refusal has. slurmdbd then rolls the whole transaction back.
func gaveUp(f *failure) bool {
	if f.stage != stageAnswered {
		return false
	}
	switch numberOf(f.err) {
	case fault.NodeCountInvalid, fault.CantRunNow, // MariaDB's numbers for a lost connection
		fault.BadConnection, fault.BadSQL:
		return true
	}
	kind := errs.KindOf(f.err)
	return kind == errs.BadAnswer || kind == errs.Unavailable
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
	gaveUp  error    // the answer with which the daemon gave the transaction up; nil while it works

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

// Context returns the context for other calls while the transaction is open.
func (e *edit) Context() context.Context {
	ctx := context.WithValue(e.s.ctx, turnKey{}, e.s.turn)
	if e.changed {
		return context.WithoutCancel(ctx)
	}
	return ctx
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
	if !e.changed && e.failure == nil {
		e.begin()
	}
	answer, err := e.send(q)
	if err != nil {
		if e.failure == nil && e.gaveUp == nil && numberOf(err) == fault.NoChange {
			return nil, nil
		}
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
	if !e.s.detach() {
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
	switch {
	case e.failure != nil:
		return nil, e.a.report([]*failure{e.failure})
	case e.gaveUp != nil:
		return nil, e.gaveUp
	}
	b, f := q.encode(e.s)
	var answer *reply
	if f == nil {
		answer, f = e.s.fetch(b, q.want, e.s.allowance(), request{whole: true})
	}
	if f == nil {
		return answer, nil
	}
	err := e.a.report([]*failure{f})
	switch {
	case f.stage != stageAnswered || errs.KindOf(f.err) == errs.Unauthenticated:
		e.failure = f
	case e.changed && gaveUp(f):
		e.gaveUp = err
	}
	return nil, err
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
