package handlers

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// transaction is an Editor that makes the daemons use what the transaction has
// stored.
//
// After a transaction slurmdbd tells the controllers about its changes, and
// applies them to its own memory, in reverse order. Each of these messages
// contains values from the time of the change: all accounts that a coordinator
// had, or the limits that all associations below an account inherited. So after
// several changes of the same records, the oldest values would be used until
// the daemons are started again, although the database has the right ones.
type transaction struct {
	model.Editor
	call           *rest.Call
	h              *handler
	added, removed map[string][]string // accounts of coordinators, by user
	associations   []model.Modify[model.Association]

	isCurrent func() (bool, error) // compares the entity tag in If-Match with the record's; nil for no comparison

	copies   bool              // new records are copies of others: what they inherit is not to become their own
	planned  map[string]bool   // in a transaction that is rolled back: the accounts in clusters that do not exist yet, as plannedKey returns them; nil otherwise
	names    map[string]string // the names that remember has found
	clusters []string          // the clusters that existingCluster has found
	sent     int               // number of changes
	records  []*putRecord      // the records that were changed
	current  *putRecord        // the record that is being changed; nil for none
	touched  map[string]bool   // the keys of the records that were changed
	effect   *effect           // of the first change that had one; nil for none
	expected *[]any            // if current is only checked again: the changes that were made of it, without those that have been compared; nil otherwise
}

// List requests records. Until the transaction has sent a change, it uses
// another session: what a transaction has read, it can't change any more if
// another client changes it (MariaDB's snapshot isolation).
func (tx *transaction) List(l model.Listing) error {
	if tx.sent == 0 {
		return tx.others(l)
	}
	return tx.Editor.List(l)
}

// Change makes a change. If it adds or removes coordinators, sendCoordinators
// makes it later.
func (tx *transaction) Change(change any) ([]string, error) {
	if skip, err := tx.noteChange(change); skip {
		return nil, err
	}
	switch ch := change.(type) {
	case model.AddCoordinators:
		tx.added = withAccounts(tx.added, ch.Users, ch.Accounts)
		return nil, nil
	case model.RemoveCoordinators:
		tx.removed = withAccounts(tx.removed, ch.Users, ch.Accounts)
		return nil, nil
	case model.Modify[model.Association]:
		if ch.Record.ParentAccount != "" && slices.ContainsFunc(tx.associations, moves) {
			return nil, errs.New(errs.Invalid, "a request can move only one account to another parent: after several moves the controllers could use an old parent")
		}
		tx.associations = append(tx.associations, ch)
	}
	return tx.send(change)
}

// moves reports whether a change moves an account to another parent.
func moves(ch model.Modify[model.Association]) bool { return ch.Record.ParentAccount != "" }

// withAccounts adds accounts to those of each user.
func withAccounts(list map[string][]string, users, accounts []string) map[string][]string {
	if list == nil {
		list = map[string][]string{}
	}
	for _, user := range users {
		list[user] = append(list[user], accounts...)
	}
	return list
}

// sendCoordinators makes the changes of coordinators, with one message for each
// user. The removals come last: their lists, which the daemons will use, contain
// the additions.
func (tx *transaction) sendCoordinators() error {
	for users, accounts := range together(tx.added) {
		if _, err := tx.send(model.AddCoordinators{Accounts: accounts, Users: users}); err != nil {
			return annotateUnchanged(err)
		}
	}
	for users, accounts := range together(tx.removed) {
		if _, err := tx.send(model.RemoveCoordinators{Accounts: accounts, Users: users}); err != nil {
			return annotateUnchanged(err)
		}
	}
	return nil
}

// together returns the users with the same accounts, and these accounts, in
// alphabetical order.
func together(list map[string][]string) func(yield func(users, accounts []string) bool) {
	byAccounts := map[string][]string{}
	for _, user := range slices.Sorted(maps.Keys(list)) {
		key := strings.Join(list[user], ",")
		byAccounts[key] = append(byAccounts[key], user)
	}
	return func(yield func(users, accounts []string) bool) {
		for _, key := range slices.Sorted(maps.Keys(byAccounts)) {
			if !yield(byAccounts[key], strings.Split(key, ",")) {
				return
			}
		}
	}
}

// sendAgain sends the changes of associations again, after the transaction has
// been committed, if one of them is an account from which others may inherit.
// The database does not change any more, so slurmdbd now tells the controllers
// the final values, in any order.
func (tx *transaction) sendAgain(ctx context.Context, a Accounting, cred model.Credential) error {
	isAccount := func(ch model.Modify[model.Association]) bool {
		return slices.Contains(ch.Filter.(model.AssocFilter).Users, "")
	}
	if len(tx.associations) < 2 || !slices.ContainsFunc(tx.associations, isAccount) {
		return nil
	}
	return a.Edit(ctx, cred, func(e model.Editor) error {
		for _, ch := range tx.associations {
			ch.Record.ParentAccount = ""
			if reflect.DeepEqual(ch.Record, model.BlankAssociation()) {
				continue
			}
			if _, err := e.Change(ch); err != nil {
				return err
			}
		}
		return nil
	})
}
