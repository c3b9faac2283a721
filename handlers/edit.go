package handlers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// edit calls the function f to make changes in one transaction, and returns the
// result of f. If the session with the daemon is lost, all changes are
// discarded, and edit may call f again. The object argument is the object's
// name in the request, for the audit log.
func (h *handler) edit(c *rest.Call, object string, f func(*transaction) ([]string, error)) ([]string, error) {
	return h.makeEdit(c, object, func() ([]string, error) { return h.transact(c, f) })
}

// makeEdit calls do to make a change, and returns its result.
func (h *handler) makeEdit(c *rest.Call, object string, do func() ([]string, error)) ([]string, error) {
	return rest.MakeChange(c, truncateList(object), do,
		func(done []string) rest.Result { return rest.Result{Objects: truncateList(strings.Join(done, "; "))} })
}

// transact does the work of edit inside rest.MakeChange.
func (h *handler) transact(c *rest.Call, f func(*transaction) ([]string, error)) (done []string, err error) {
	numWarnings := c.NumWarnings()
	var tx *transaction
	for attempt := 1; ; attempt++ {
		err = h.Accounting.Edit(c.Context(), c.Credential(), func(e model.Editor) error {
			c.KeepWarnings(numWarnings)
			tx = &transaction{Editor: e, call: c, h: h, touched: map[string]bool{}}
			if done, err = f(tx); err != nil {
				return err
			}
			if err := tx.sendCoordinators(); err != nil {
				return err
			}
			return tx.confirm()
		})
		if err != nil || tx.isSaved() {
			break
		}
		if attempt == maxCommits {
			return nil, errNotSaved()
		}
	}
	if err == nil {
		if err := tx.sendAgain(context.WithoutCancel(c.Context()), h.Accounting, c.Credential()); err != nil {
			c.Warn("", "the changes are saved, but until slurmctld is started again, it may use old values of some associations: %s", rest.Problem(err).Description)
		}
	}
	return done, err
}

// maxCommits is how often a transaction is committed that the daemon does not
// save.
const maxCommits = 3

// answerEdit answers a request that changes records. If err is nil, the answer
// contains only the envelope.
func (h *handler) answerEdit(c *rest.Call, err error) error {
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Empty, &api.EmptyAnswer{Envelope: c.Envelope()})
}

// kind describes the records of one kind to the functions that change records.
type kind[T any] struct {
	list string          // name of a list of these records in a body
	noun string          // word for one of them
	name func(*T) string // returns the name of a record

	// put creates or changes a record, and reports whether it had to change
	// anything. The argument at is the record's place in the request.
	put func(tx *transaction, record *T, at string) (bool, error)

	// path returns the path and query of the GET request for one record. It is nil
	// for kinds of records that can't be changed. The path is "" if there is no such
	// record.
	path func(tx *transaction, record *T) (string, url.Values, error)

	first int // index of the first of these records in the body's list
}

// editEach creates or changes one record after another, in one transaction. If
// one record can't be changed, none is.
func editEach[T any](h *handler, c *rest.Call, k kind[T], records []T) error {
	if len(records) == 0 {
		if c.Lenient(api.NoRecords) {
			c.Warn("#/"+k.list, "the list is empty: nothing was changed")
			return nil
		}
		return errs.New(errs.Invalid, "the body names no record: nothing was changed").WithSource("#/" + k.list).WithNumber(slurmerror.EmptyList)
	}
	path := k.path
	if len(records) != 1 || path != nil && !c.CheckTags() {
		path = nil // one tag can't be that of several records
	}
	_, err := h.edit(c, strings.Join(k.names(records), " "), func(tx *transaction) ([]string, error) {
		if path != nil {
			tx.isCurrent = func() (bool, error) {
				at, query, err := path(tx, &records[0])
				if err != nil || at == "" {
					return false, err
				}
				return c.IsCurrent(tx.Editor.Context(), at, query)
			}
			if err := tx.checkTag(); err != nil {
				return nil, err
			}
		}
		return changeRecords(tx, k, records)
	})
	return err
}

func (k *kind[T]) names(records []T) []string {
	names := make([]string, len(records))
	for i := range records {
		names[i] = k.name(&records[i])
	}
	return names
}

// changeRecords does the work of editEach in a transaction. It returns the
// names of the records that were changed.
func changeRecords[T any](tx *transaction, k kind[T], records []T) ([]string, error) {
	names := k.names(records)
	var done []string
	changedAt := map[string]string{} // places of the records that were changed, by the key of the name
	for i := range records {
		at := fmt.Sprintf("#/%s/%d", k.list, k.first+i)
		numWarnings := tx.call.NumWarnings()
		changed, err := tx.putRecord(k.list+"/"+model.NameKey(names[i]), func() (bool, error) { return k.put(tx, &records[i], at) })
		if err != nil {
			return nil, annotateUnchanged(annotateNamed(err, k.noun, names[i], at))
		}
		if !changed && numWarnings == tx.call.NumWarnings() {
			tx.call.Warn(at, "%s %s was not changed: the request has no other value for it", k.noun, names[i])
		}
		if !changed {
			continue
		}
		// slurmdbd passes the changes of a transaction on to the controllers in
		// reverse order, so they would use the values of the first one.
		if other := changedAt[model.NameKey(names[i])]; other != "" {
			return nil, errs.New(errs.Invalid, "%s %s is also in %s, with other values; nothing was changed", k.noun, names[i], other).WithSource(at).WithNumber(slurmerror.AmbiguousModify)
		}
		changedAt[model.NameKey(names[i])] = at
		done = append(done, names[i])
	}
	return done, nil
}

// recordDeleted is the flag that marks a record as deleted. Most kinds of
// records use this value.
const recordDeleted uint32 = 1

// skipDeleted reports whether a record is marked as deleted, and must therefore
// be skipped. If so, it adds a warning. A body may contain deleted records if
// it is a copy of a configuration.
func skipDeleted(tx *transaction, flags, deleted uint32, at string) bool {
	if flags&deleted == 0 {
		return false
	}
	tx.call.Warn(at+"/flags", "a deleted record is left out")
	return true
}

// pathOf returns a function that returns the path for a record, which ends with
// its name.
func pathOf[T any](parent string, name func(*T) string) func(*transaction, *T) (string, url.Values, error) {
	return func(_ *transaction, record *T) (string, url.Values, error) {
		return parent + url.PathEscape(name(record)), nil, nil
	}
}

// removal returns a function that always returns r.
func removal(r any) func(*transaction) (any, error) {
	return func(*transaction) (any, error) { return r, nil }
}

// removeRecords removes records in one transaction, and returns the names of
// the removed records. If there were none, it returns an error. The function
// buildRemoval returns the removal to send to the daemon.
//
// If the function check is not nil, removeRecords calls it with the names
// before it commits the transaction. If check returns an error, nothing is
// removed.
func (h *handler) removeRecords(c *rest.Call, kind, name, source string,
	buildRemoval func(*transaction) (any, error), check func([]string) error) ([]string, error) {
	names, err := h.edit(c, name, func(tx *transaction) (names []string, err error) {
		defer func() { err = allowMissing(c, err, kind, name, source) }()
		r, err := buildRemoval(tx)
		if err != nil {
			return nil, err
		}
		names, err = tx.Change(r)
		switch {
		case err != nil && len(names) > 0:
			return nil, annotateBlocked(err, names)
		case err != nil:
			return nil, err
		case len(names) == 0:
			return nil, errs.New(errs.NotFound, "there is no such record")
		case check != nil:
			return names, check(names)
		}
		return names, nil
	})
	return names, annotateNamed(err, kind, name, source)
}

// allowMissing replaces the error of a removal that finds no record with a
// warning, in Slurm's spelling.
func allowMissing(c *rest.Call, err error, kind, name, source string) error {
	if errs.KindOf(err) != errs.NotFound || !c.Lenient(api.NothingToRemove) {
		return err
	}
	c.Warn(source, "%s %s: there is no such record", kind, name)
	return nil
}

func (h *handler) answerRemoval(c *rest.Call, table *api.AnswerType[api.RemovedAnswer], names []string, err error) error {
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, table, &api.RemovedAnswer{Names: names, Envelope: c.Envelope()})
}

// add adds a record, and checks that the filter finds it: slurmdbd reports
// success for some records that it does not make, such as an association with
// a default QOS that the same transaction has created. A user without a level
// does not find a record that slurmdbd's PrivateData hides. It may have existed
// before, and then the daemon has overwritten it: the error undoes this.
func add[T any](tx *transaction, record T, filter model.Filter[T], at string) error {
	if _, err := tx.Change(model.Add[T]{Records: []T{record}}); err != nil || tx.expected != nil {
		return err
	}
	found, err := hasRecord(tx, filter)
	if err != nil || found {
		return err
	}
	switch any(record).(type) {
	case model.Account, model.User: // coordinators see the other kinds of records that they may create
		if private, err := hasNoLevel(tx); private || err != nil {
			return cmp.Or[error](err, errs.New(errs.Denied, "the accounting daemon does not show you this record, so you could overwrite one that exists").WithSource(at).WithNumber(slurmerror.AccessDenied).
				WithHint("PrivateData of slurmdbd hides the record; POST accounts_association/ and users_association/ create accounts and users below an account that you coordinate"))
		}
	}
	return errs.New(errs.Invalid, "the accounting daemon reported success, but has not made the record").WithSource(at).
		WithHint("look into its log; a default QOS must be among the association's QOS, and a QOS that the request itself creates can be a default only in a later request")
}

// hasRecord reports whether a filter selects at least one record.
func hasRecord[T any](e model.Editor, filter model.Filter[T]) (found bool, err error) {
	err = e.List(model.List(filter, func(*T) error { found = true; return nil }))
	return found, err
}

// findOne returns the record that a filter selects, or nil if there is none. If
// there are several, it returns an error.
func findOne[T any](e interface{ List(model.Listing) error }, filter model.Filter[T]) (*T, error) {
	var found *T
	several := false
	err := e.List(model.List(filter, func(record *T) error {
		if k, ok := any(record).(*model.WCKey); ok && ownWCKey(k.Name) { // slurmdbd finds *k, too, if a filter names k
			return nil
		}
		if several = found != nil; !several {
			copied := *record
			found = &copied
		}
		return nil
	}))
	if several && err == nil {
		err = errs.New(errs.Invalid, "more than one record is named")
	}
	return found, err
}

// modifyRecords changes existing records, and reports whether the daemon changed
// any. If it did not, modifyRecords adds a warning.
func modifyRecords(tx *transaction, change any, at string) (bool, error) {
	names, err := tx.Change(change)
	if err == nil && len(names) == 0 {
		tx.call.Warn(at, "the accounting daemon found nothing to change")
	}
	return len(names) > 0, err
}
