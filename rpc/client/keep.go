package client

import (
	"time"
)

// store keeps answers of the controller for later calls that accept older data
// (package origin). The lock of rounds guards it.
type store struct {
	answers map[roundKey]*kept
	size    int // bytes of all answers, as the controller sent them
	changes int // changes that this Client has made; an answer that was requested before the last one is not kept
}

// kept is an answer that is kept.
type kept struct {
	answer *reply // only shared, never read
	size   int
	asked  time.Time // when it was requested
	expiry *time.Timer
}

// maxKept limits the sum of the answers that are kept, relative to the budget.
// They take memory only until other answers need it.
const maxKept = 2

// recall returns an answer that was kept, or nil if there is none of an age that
// accepts allows.
func (all *rounds) recall(key roundKey, now time.Time, accepts func(age time.Duration) bool) *reply {
	all.mu.Lock()
	defer all.mu.Unlock()
	one := all.kept.answers[key]
	if one == nil || !accepts(now.Sub(one.asked)) {
		return nil
	}
	answer := one.answer.another()
	answer.age = now.Sub(one.asked)
	return answer
}

// keep keeps an answer for the given time after it was requested. It takes over
// the answer, and discards it if the limit is exceeded. The caller holds the
// lock.
func (all *rounds) keep(key roundKey, answer *reply, asked time.Time, lifetime time.Duration, limit int) {
	one := &kept{answer: answer, size: len(answer.first) + answer.remaining, asked: asked}
	all.discard(key, all.kept.answers[key])
	for all.kept.size+one.size > limit && len(all.kept.answers) > 0 {
		all.discardOldest()
	}
	if one.size > limit {
		answer.release()
		return
	}
	if all.kept.answers == nil {
		all.kept.answers = map[roundKey]*kept{}
	}
	one.expiry = time.AfterFunc(time.Until(asked.Add(lifetime)), func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		all.discard(key, one)
	})
	all.kept.answers[key] = one
	all.kept.size += one.size
}

// discard discards an answer, unless another one is kept in its place. The
// caller holds the lock.
func (all *rounds) discard(key roundKey, one *kept) {
	if one == nil || all.kept.answers[key] != one {
		return
	}
	one.expiry.Stop()
	delete(all.kept.answers, key)
	all.kept.size -= one.size
	one.answer.release()
}

func (all *rounds) discardOldest() {
	var oldest roundKey
	for key, one := range all.kept.answers {
		if first := all.kept.answers[oldest]; first == nil || one.asked.Before(first.asked) {
			oldest = key
		}
	}
	all.discard(oldest, all.kept.answers[oldest])
}

// changed makes all answers that were requested so far useless for later calls,
// because the Client has made a change.
func (all *rounds) changed() {
	all.mu.Lock()
	all.kept.changes++
	all.mu.Unlock()
	all.free()
}

// free discards all answers. It returns false if there are none.
func (all *rounds) free() bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	some := len(all.kept.answers) > 0
	for key, one := range all.kept.answers {
		all.discard(key, one)
	}
	return some
}
