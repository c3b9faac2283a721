package handlers

import (
	"maps"
	"slices"
	"strings"

	"schedrestd/model"
)

// coordinatorMerger is an Editor that makes the changes of coordinators at the
// end, with one message for each user.
//
// After a transaction slurmdbd tells the controllers about its changes, and
// applies them to its own memory, in reverse order. Each change of a coordinator
// contains all accounts that the user coordinated when the change was made. So
// after several changes of the same user, the daemons would use the oldest list,
// until the daemons are started again.
type coordinatorMerger struct {
	model.Editor
	added, removed map[string][]string // accounts by user
}

// Change makes a change. If it adds or removes coordinators, send makes it
// later.
func (m *coordinatorMerger) Change(change any) ([]string, error) {
	switch ch := change.(type) {
	case model.AddCoordinators:
		m.added = withAccounts(m.added, ch.Users, ch.Accounts)
		return nil, nil
	case model.RemoveCoordinators:
		m.removed = withAccounts(m.removed, ch.Users, ch.Accounts)
		return nil, nil
	}
	return m.Editor.Change(change)
}

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

// send makes the changes of coordinators. The removals come last: their lists,
// which the controllers will use, contain the additions.
func (m *coordinatorMerger) send() error {
	for users, accounts := range together(m.added) {
		if _, err := m.Editor.Change(model.AddCoordinators{Accounts: accounts, Users: users}); err != nil {
			return annotateUnchanged(err)
		}
	}
	for users, accounts := range together(m.removed) {
		if _, err := m.Editor.Change(model.RemoveCoordinators{Accounts: accounts, Users: users}); err != nil {
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
