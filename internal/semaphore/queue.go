package semaphore

import (
	"cmp"
	"container/list"
)

// A Queue divides places among keys, and holds the items that wait for a place.
// It decides which item comes next; its users decide how an item waits. The
// items can also be what a key could do without (see Most). A Queue has no lock,
// and must be made with NewQueue.
type Queue[K, T comparable] struct {
	row     Row
	free    int // places that no key holds
	rank    func(key K, held int, first T) int
	keys    map[K]*account      // of keys that hold places or have waiting items
	waiting map[K]*account      // of keys that have waiting items
	items   map[T]*list.Element // of all waiting items
	turn    uint64              // the last account.turn
}

// An account has what one key holds, and its waiting items in the order of their
// arrival.
type account struct {
	held  int
	items list.List
	turn  uint64 // orders keys of the same rank: the key that has waited for its turn longest has the lowest
}

// NewQueue returns a Queue with the places of a row. The function rank gets a key,
// the number of places that it holds, and its first waiting item. The key with the
// lowest rank gets the next place; a negative rank means that it gets none. If rank
// is nil, the row decides (see rankByRow).
func NewQueue[K, T comparable](row Row, rank func(key K, held int, first T) int) *Queue[K, T] {
	row.Share = cmp.Or(row.Share, row.Total)
	q := &Queue[K, T]{row: row, free: row.Total, rank: rank, keys: map[K]*account{}, waiting: map[K]*account{}, items: map[T]*list.Element{}}
	if rank == nil {
		q.rank = q.rankByRow
	}
	return q
}

// rankByRow orders the keys of waiting items:
//   - Keys that hold less than their share. The key that holds the fewest places
//     comes first.
//   - Items without a key, if the row lends places. If it does not lend places,
//     the zero key is treated like any other key.
//   - Keys that hold their share or more, if the row lends places. If it does not
//     lend places, they get no place.
func (q *Queue[K, T]) rankByRow(key K, held int, _ T) int {
	var unknown K
	switch {
	case key == unknown && q.row.Lends:
		return q.row.Total
	case held < q.row.Share:
		return held
	case q.row.Lends:
		return q.row.Total + held
	}
	return -1
}

// Free returns the number of free places. It can be negative after AddFree or
// Hold.
func (q *Queue[K, T]) Free() int { return q.free }

// Used returns the number of places that are held.
func (q *Queue[K, T]) Used() int { return q.row.Total - q.free }

// AddFree adds n places, or removes them if n is negative.
func (q *Queue[K, T]) AddFree(n int) { q.free += n }

// Keys returns the number of keys that hold places or have waiting items.
func (q *Queue[K, T]) Keys() int { return len(q.keys) }

// Len returns the number of waiting items.
func (q *Queue[K, T]) Len() int { return len(q.items) }

// Held returns the number of places that the key holds.
func (q *Queue[K, T]) Held(key K) int {
	if a := q.keys[key]; a != nil {
		return a.held
	}
	return 0
}

// AtShare reports whether the key holds its share or more.
func (q *Queue[K, T]) AtShare(key K) bool { return q.Held(key) >= q.row.Share }

// Hold gives n free places to the key, or takes back places if n is negative.
func (q *Queue[K, T]) Hold(key K, n int) {
	q.free -= n
	q.account(key).held += n
	q.tidy(key)
}

// Waiting returns the number of waiting items of a key.
func (q *Queue[K, T]) Waiting(key K) int {
	if a := q.waiting[key]; a != nil {
		return a.items.Len()
	}
	return 0
}

// First returns the waiting item of a key that arrived first. It returns false
// if there is none.
func (q *Queue[K, T]) First(key K) (item T, ok bool) {
	if a := q.waiting[key]; a != nil {
		return a.items.Front().Value.(T), true
	}
	return item, false
}

// Last returns the waiting item of a key that arrived last. There must be one.
func (q *Queue[K, T]) Last(key K) T { return q.waiting[key].items.Back().Value.(T) }

// WaitingKeys calls yield with each key that has waiting items and with the
// first of them, until yield returns false. The function yield may remove items
// of this key.
func (q *Queue[K, T]) WaitingKeys(yield func(K, T) bool) {
	for key, a := range q.waiting {
		if !yield(key, a.items.Front().Value.(T)) {
			return
		}
	}
}

// Items calls yield with each waiting item, until yield returns false. The
// function yield may remove items.
func (q *Queue[K, T]) Items(yield func(T) bool) {
	for item := range q.items {
		if !yield(item) {
			return
		}
	}
}

// Push adds a waiting item, which must not be in the Queue.
func (q *Queue[K, T]) Push(key K, item T) {
	a := q.account(key)
	if a.items.Len() == 0 {
		q.turn++
		a.turn, q.waiting[key] = q.turn, a
	}
	q.items[item] = a.items.PushBack(item)
}

// Remove removes a waiting item, and reports whether it was waiting.
func (q *Queue[K, T]) Remove(key K, item T) bool {
	at, ok := q.items[item]
	if ok {
		delete(q.items, item)
		q.waiting[key].items.Remove(at)
		q.tidy(key)
	}
	return ok
}

// Next gives a free place to the next waiting item, removes the item from the
// queue, and returns it. It returns false if no place is free, or if no waiting
// key may have one. If keys have the same rank, they take turns.
func (q *Queue[K, T]) Next() (item T, ok bool) {
	if q.free <= 0 {
		return item, false
	}
	var next K
	least := -1
	for key, first := range q.WaitingKeys {
		a := q.waiting[key]
		rank := q.rank(key, a.held, first)
		if rank >= 0 && (least < 0 || rank < least || rank == least && a.turn < q.waiting[next].turn) {
			next, least, item = key, rank, first
		}
	}
	if least < 0 {
		return item, false
	}
	q.turn++
	q.waiting[next].turn = q.turn
	q.Hold(next, 1)
	q.Remove(next, item)
	return item, true
}

// Most returns the first item of the key that holds the most places, of those
// that have items. If the items are what their keys could do without, this is
// the one to remove when places are needed: a key with many does not displace
// those of others. Most returns false if there are no items.
func (q *Queue[K, T]) Most() (item T, ok bool) {
	var most *account
	for _, a := range q.waiting {
		if most == nil || a.held > most.held || a.held == most.held && a.turn < most.turn {
			most = a
		}
	}
	if most == nil {
		return item, false
	}
	return most.items.Front().Value.(T), true
}

// account returns the account of a key, and creates it if necessary.
func (q *Queue[K, T]) account(key K) *account {
	a := q.keys[key]
	if a == nil {
		a = new(account)
		q.keys[key] = a
	}
	return a
}

// tidy deletes the account of a key that holds no place and has no waiting
// items.
func (q *Queue[K, T]) tidy(key K) {
	a := q.keys[key]
	if a.items.Len() == 0 {
		delete(q.waiting, key)
		if a.held == 0 {
			delete(q.keys, key)
		}
	}
}
