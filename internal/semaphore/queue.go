package semaphore

import "slices"

// A Queue divides places among keys, and holds the items that wait for a place.
// It decides which item comes next; its users decide how an item waits. A Queue
// has no lock, and must be made with NewQueue.
type Queue[K, T comparable] struct {
	free    int // places that no key holds
	rank    func(key K, held int, first T) int
	keys    map[K]*account[T] // of keys that hold places or have waiting items
	waiting map[K]*account[T] // of keys that have waiting items
	items   int               // number of waiting items
	turn    uint64            // the last account.turn
}

// An account has what one key holds, and its waiting items in the order of their
// arrival.
type account[T any] struct {
	held  int
	items []T
	turn  uint64 // orders keys of the same rank: the key that has waited for its turn longest has the lowest
}

// NewQueue returns a Queue with free places. The function rank gets a key, the
// number of places that it holds, and its first waiting item. The key with the
// lowest rank gets the next place; a negative rank means that it gets none. If
// items never wait, rank can be nil.
func NewQueue[K, T comparable](free int, rank func(key K, held int, first T) int) *Queue[K, T] {
	return &Queue[K, T]{free: free, rank: rank, keys: map[K]*account[T]{}, waiting: map[K]*account[T]{}}
}

// Free returns the number of free places. It can be negative after AddFree.
func (q *Queue[K, T]) Free() int { return q.free }

// AddFree adds n places, or removes them if n is negative.
func (q *Queue[K, T]) AddFree(n int) { q.free += n }

// Keys returns the number of keys that hold places or have waiting items.
func (q *Queue[K, T]) Keys() int { return len(q.keys) }

// Len returns the number of waiting items.
func (q *Queue[K, T]) Len() int { return q.items }

// Held returns the number of places that the key holds.
func (q *Queue[K, T]) Held(key K) int {
	if a := q.keys[key]; a != nil {
		return a.held
	}
	return 0
}

// Hold gives n free places to the key, or takes back places if n is negative.
func (q *Queue[K, T]) Hold(key K, n int) {
	q.free -= n
	q.account(key).held += n
	q.tidy(key)
}

// Waiting returns the waiting items of a key.
func (q *Queue[K, T]) Waiting(key K) []T {
	if a := q.waiting[key]; a != nil {
		return a.items
	}
	return nil
}

// All calls yield with the waiting items of each key, until it returns false.
// The function yield may remove items.
func (q *Queue[K, T]) All(yield func(K, []T) bool) {
	for key, a := range q.waiting {
		if !yield(key, a.items) {
			return
		}
	}
}

// Push adds a waiting item.
func (q *Queue[K, T]) Push(key K, item T) {
	a := q.account(key)
	if len(a.items) == 0 {
		q.turn++
		a.turn, q.waiting[key] = q.turn, a
	}
	a.items = append(a.items, item)
	q.items++
}

// Remove removes a waiting item.
func (q *Queue[K, T]) Remove(key K, item T) {
	a := q.waiting[key]
	i := slices.Index(a.items, item)
	a.items = slices.Delete(a.items, i, i+1)
	q.items--
	q.tidy(key)
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
	for key, a := range q.waiting {
		rank := q.rank(key, a.held, a.items[0])
		if rank >= 0 && (least < 0 || rank < least || rank == least && a.turn < q.waiting[next].turn) {
			next, least = key, rank
		}
	}
	if least < 0 {
		return item, false
	}
	a := q.waiting[next]
	item = a.items[0]
	q.turn++
	a.turn = q.turn
	q.Hold(next, 1)
	q.Remove(next, item)
	return item, true
}

// account returns the account of a key, and creates it if necessary.
func (q *Queue[K, T]) account(key K) *account[T] {
	a := q.keys[key]
	if a == nil {
		a = new(account[T])
		q.keys[key] = a
	}
	return a
}

// tidy deletes the account of a key that holds no place and has no waiting
// items.
func (q *Queue[K, T]) tidy(key K) {
	a := q.keys[key]
	if len(a.items) == 0 {
		delete(q.waiting, key)
		if a.held == 0 {
			delete(q.keys, key)
		}
	}
}
