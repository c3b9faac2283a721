package handlers

import (
	"context"
	"reflect"
	"slices"

	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// slurmdbd and its database may lose changes that they acknowledge, in three
// ways. This file finds them out.
//
// Between the request for a record and its change, another client may commit a
// change of it. slurmdbd then adds a record that exists meanwhile, and overwrites
// its fields; or the change has values that were computed from the old record.
// So the records are requested in other sessions, where the transaction's own
// changes are invisible. Before the commit, when the transaction holds the locks
// of all records that it changed, confirm requests them again. If one differs,
// the transaction goes on only if it would make the same changes of this record
// again.
//
// If the database ends a transaction because of a deadlock, slurmdbd repeats the
// last statement, and acknowledges everything. The same happens if slurmdbd
// connects to its database again. All earlier changes are lost. So confirm checks
// that the first change with a visible effect still has it.
//
// Also, slurmdbd acknowledges a commit that fails. So isSaved checks after the
// commit that this change is visible to others.

// A lister requests records.
type lister func(model.Listing) error

// List makes a lister an argument of findOne.
func (l lister) List(listing model.Listing) error { return l(listing) }

// A view requests something that a change affects. Its result is nil or a
// pointer to a struct.
type view func(lister) (any, error)

// putRecord is a record of the request, and what was done to change it.
type putRecord struct {
	key     string // kind and name
	put     func() (bool, error)
	old     []oldRecord
	changes []any
}

// oldRecord is a record before the transaction.
type oldRecord struct {
	view  view
	value any
}

// An effect is what the first visible change of a transaction did.
type effect struct {
	view        view
	committed   any    // what view returns in other sessions
	change, end any    // what view returned in the transaction after the change, and before the commit
	own         []bool // the fields of the struct that the change has changed; nil if it has created or removed the struct
}

// putRecord calls put to change a record, and remembers what it did.
func (tx *transaction) putRecord(key string, put func() (bool, error)) (bool, error) {
	tx.current = &putRecord{key: key, put: put}
	defer func() { tx.current = nil }()
	changed, err := put()
	if len(tx.current.changes) > 0 {
		tx.records = append(tx.records, tx.current)
		tx.touched[key] = true
	}
	return changed, err
}

// findOld returns the record that a request is about to change, or nil if there
// is none. If the transaction has changed it already, this is the changed record.
func findOld[T any](tx *transaction, filter model.Filter[T]) (*T, error) {
	if tx.current == nil || tx.touched[tx.current.key] {
		return findOne(tx.olds(), filter)
	}
	found := func(l lister) (any, error) {
		record, err := findOne(l, filter)
		if record == nil {
			return nil, err
		}
		return record, err
	}
	value, err := found(tx.others)
	if err != nil {
		return nil, err
	}
	if tx.expected == nil {
		tx.current.old = append(tx.current.old, oldRecord{found, value})
	}
	record, _ := value.(*T)
	if record != nil {
		copied := *record
		record = &copied
	}
	return record, nil
}

// olds returns the lister for what a request is about to change, as findOld
// uses it.
func (tx *transaction) olds() lister {
	if tx.current == nil || tx.touched[tx.current.key] {
		return tx.List
	}
	return tx.others
}

// others requests records in another session: they do not include the changes of
// this transaction.
func (tx *transaction) others(l model.Listing) error {
	return tx.h.Accounting.List(tx.Editor.Context(), tx.call.Credential(), l)
}

// noteChange remembers the change that is about to be made, or, if tx only
// checks a record again, compares it with the one that was made. It then
// returns true, and the change must not be sent.
func (tx *transaction) noteChange(change any) (skip bool, err error) {
	if tx.expected != nil {
		if len(*tx.expected) == 0 || !reflect.DeepEqual((*tx.expected)[0], change) {
			return true, model.ErrRestart
		}
		*tx.expected = (*tx.expected)[1:]
		return true, nil
	}
	if tx.current != nil {
		tx.current.changes = append(tx.current.changes, change)
	}
	return false, nil
}

// send sends a change. If no change had a visible effect yet, send finds out
// whether this one has.
func (tx *transaction) send(change any) ([]string, error) {
	v, before, err := tx.viewBefore(change)
	if err != nil {
		return nil, err
	}
	tx.sent++
	names, err := tx.Editor.Change(change)
	if _, isCluster := change.(model.Remove[model.Cluster]); v == nil || err != nil || isCluster { // slurmdbd answers nothing after the removal of a cluster
		return names, err
	}
	after, err := v(tx.Editor.List)
	if err != nil {
		return names, err
	}
	if reflect.DeepEqual(before, after) {
		if len(names) > 0 && isRemoval(change) && before.(*recordCount).N > 0 { // the daemon names what it has removed
			err = model.ErrRestart
		}
		return names, err
	}
	committed, err := v(tx.others)
	if err == nil {
		tx.effect = newEffect(v, before, committed, after)
	}
	return names, err
}

// viewBefore returns a view of what the change affects, and its result before
// the change. It returns nil if an earlier change had an effect.
func (tx *transaction) viewBefore(change any) (view, any, error) {
	if tx.effect != nil {
		return nil, nil, nil
	}
	v := viewOf(change)
	if v == nil && tx.current != nil && len(tx.current.old) > 0 {
		last := tx.current.old[len(tx.current.old)-1]
		if tx.sent == 0 {
			return last.view, last.value, nil
		}
		v = last.view
	}
	if v == nil {
		return nil, nil, nil
	}
	before, err := v(tx.others)
	return v, before, err
}

// newEffect returns the effect of a change, or nil if it had none. The arguments
// are what v returned in other sessions before and after the change, and in the
// transaction after it. Other clients may have changed other fields meanwhile,
// and the transaction may see these or not.
func newEffect(v view, before, committed, change any) *effect {
	e := &effect{view: v, committed: committed, change: change, end: change}
	if before == nil || committed == nil || change == nil {
		if (before == nil) == (committed == nil) && (change == nil) != (committed == nil) {
			return e
		}
		return nil
	}
	e.own = make([]bool, fields(change))
	for i := range e.own {
		e.own[i] = isEqual(before, committed, i) && !isEqual(committed, change, i)
	}
	if !slices.Contains(e.own, true) {
		return nil
	}
	return e
}

func isRemoval(change any) bool {
	switch change.(type) {
	case model.Remove[model.Account], model.Remove[model.Association], model.Remove[model.QOS], model.Remove[model.User], model.Remove[model.WCKey]:
		return true
	}
	return false
}

// confirm returns model.ErrRestart if the transaction must start again. It is
// called after all changes.
func (tx *transaction) confirm() error {
	if err := tx.checkTag(); err != nil { // other clients can't change the record any more
		return err
	}
	for _, r := range tx.records {
		if err := tx.checkAgain(r); err != nil {
			return err
		}
	}
	if err := tx.clustersRemain(); err != nil {
		return err
	}
	if tx.effect == nil || tx.sent == 1 {
		return nil
	}
	var err error
	if tx.effect.end, err = tx.effect.view(tx.Editor.List); err == nil && tx.effect.isLost() {
		err = model.ErrRestart
	}
	return err
}

// checkTag returns an error if the record is not the one that If-Match names.
func (tx *transaction) checkTag() error {
	if tx.isCurrent == nil {
		return nil
	}
	current, err := tx.isCurrent()
	if err == nil && !current {
		err = rest.ErrNotCurrent()
	}
	return err
}

// checkAgain returns model.ErrRestart if a record has changed since the request
// for it, and other changes would be made of it now.
func (tx *transaction) checkAgain(r *putRecord) error {
	isSame := true
	for _, old := range r.old {
		value, err := old.view(tx.others)
		if err != nil {
			return err
		}
		isSame = isSame && reflect.DeepEqual(old.value, value)
	}
	if isSame {
		return nil
	}
	numWarnings, expected := tx.call.NumWarnings(), slices.Clone(r.changes)
	tx.current, tx.expected = r, &expected
	delete(tx.touched, r.key)
	_, err := r.put()
	tx.current, tx.expected, tx.touched[r.key] = nil, nil, true
	tx.call.KeepWarnings(numWarnings)
	if err != nil || len(expected) > 0 {
		return model.ErrRestart
	}
	return nil
}

// isLost reports whether the transaction no longer contains a part of the
// effect: there is the committed value instead.
func (e *effect) isLost() bool {
	if e.own == nil || e.end == nil {
		return (e.end == nil) != (e.change == nil)
	}
	for i, own := range e.own {
		if own && !isEqual(e.end, e.change, i) && isEqual(e.end, e.committed, i) {
			return true
		}
	}
	return false
}

// isSaved reports whether the changes of the transaction are visible to others.
// If they are not, the daemon has not committed them.
func (tx *transaction) isSaved() bool {
	e := tx.effect
	if e == nil {
		return true
	}
	now, err := e.view(func(l model.Listing) error {
		return tx.h.Accounting.List(context.WithoutCancel(tx.call.Context()), tx.call.Credential(), l)
	})
	switch {
	case err != nil: // the daemon has acknowledged the commit
		return true
	case e.own == nil || now == nil || e.end == nil:
		return (now == nil) != (e.committed == nil)
	}
	for i, own := range e.own {
		if own && (!isEqual(now, e.committed, i) || isEqual(e.end, e.committed, i)) {
			return true
		}
	}
	return false
}

// errNotSaved is the error for changes that are not saved although the daemon
// has acknowledged the commit.
func errNotSaved() error {
	return errs.New(errs.Unavailable, "the accounting daemon reported success several times, but did not save the changes: nothing was changed").
		WithHint("look into its log, and send the request again later")
}

// fields returns the number of fields of the struct that p points to.
func fields(p any) int { return reflect.ValueOf(p).Elem().NumField() }

// isEqual reports whether two structs have the same value of their i-th field.
func isEqual(x, y any, i int) bool {
	return reflect.DeepEqual(reflect.ValueOf(x).Elem().Field(i).Interface(), reflect.ValueOf(y).Elem().Field(i).Interface())
}

// recordCount is the result of a view of several records.
type recordCount struct{ N, More int }

// coordinatorNames is the result of a view of coordinators.
type coordinatorNames struct{ List []string }

// viewOf returns a view of what a change affects. It returns nil for changes of
// single records, and for those of jobs.
func viewOf(change any) view {
	switch ch := change.(type) {
	case model.Remove[model.Account]:
		return count(ch.Filter)
	case model.Remove[model.Association]:
		return count(ch.Filter)
	case model.Remove[model.Cluster]:
		return count(ch.Filter)
	case model.Remove[model.QOS]:
		return count(ch.Filter)
	case model.Remove[model.User]:
		return count(ch.Filter)
	case model.Remove[model.WCKey]:
		return count(ch.Filter)
	case model.AddCoordinators:
		return coordinatorsOf(ch.Accounts)
	case model.RemoveCoordinators:
		return coordinatorsOf(ch.Accounts)
	case model.AddAccountsWithAssocs:
		assocs := model.AssocFilter{Accounts: ch.Accounts, Clusters: ch.Clusters, Users: []string{""}}
		return both(count[model.Account](model.AccountFilter{Assoc: model.AssocFilter{Accounts: ch.Accounts}}), count[model.Association](assocs))
	case model.AddUsersWithAssocs:
		keys := count[model.WCKey](model.WCKeyFilter{Users: ch.Users, Clusters: ch.Clusters})
		return both(keys, count[model.Association](model.AssocFilter{Clusters: ch.Clusters, Users: ch.Users}))
	}
	return nil
}

// count returns a view of the number of records that a filter selects. For a
// user who may change such records, but not list them, it is always 0: slurmdbd
// lets coordinators give workload keys to new users. It then lists them only
// once, because a refusal in a transaction makes slurmdbd roll it back.
func count[T any](filter model.Filter[T]) view {
	denied := false
	return func(l lister) (any, error) {
		var n recordCount
		if denied {
			return &n, nil
		}
		err := l(model.List(filter, func(*T) error { n.N++; return nil }))
		if denied = errs.KindOf(err) == errs.Denied; denied {
			return &recordCount{}, nil
		}
		return &n, err
	}
}

// both returns a view of two numbers.
func both(one, other view) view {
	return func(l lister) (any, error) {
		n, err := one(l)
		if err != nil {
			return nil, err
		}
		more, err := other(l)
		if err != nil {
			return nil, err
		}
		return &recordCount{n.(*recordCount).N, more.(*recordCount).N}, nil
	}
}

// coordinatorsOf returns a view of the coordinators of accounts.
func coordinatorsOf(accounts []string) view {
	filter := model.AccountFilter{Assoc: model.AssocFilter{Accounts: accounts}, Flags: model.AccountWithCoordinators}
	return func(l lister) (any, error) {
		var names coordinatorNames
		err := l(model.List(filter, func(a *model.Account) error {
			for _, c := range a.Coordinators {
				names.List = append(names.List, a.Name+" "+c.Name)
			}
			return nil
		}))
		slices.Sort(names.List)
		return &names, err
	}
}
