package client

import (
	"context"
	"encoding/binary"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
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

// datedLifetime is how long the answer to a request with a dated body is kept. It
// is not longer, because after a failover to a controller whose clock is wrong,
// "no change" may be wrong.
const datedLifetime = time.Minute

// askDated sends a request. If an answer to it is kept, and r has a dated body,
// askDated asks only for what has changed since, and returns the answer that is
// kept if nothing has.
func (c *Client) askDated(ctx context.Context, key roundKey, cred model.Credential, r request) (*reply, error) {
	if r.dated == nil {
		return c.askAlone(ctx, cred, r)
	}
	old := c.rounds.recall(key, c.now(), func(age time.Duration) bool { return age >= 0 && age < datedLifetime })
	if old == nil {
		return c.askAlone(ctx, cred, r)
	}
	r.body = r.dated(old.lastUpdate())
	answer, err := c.askAlone(ctx, cred, r)
	if err == nil && answer.isUnchanged() {
		answer.release()
		old.age = 0
		return old, nil
	}
	old.release()
	return answer, err
}

// lastUpdate returns the time in a list, which follows the number of records.
func (a *reply) lastUpdate() model.Time {
	if len(a.first) < 12 {
		return 0
	}
	return model.Time(binary.BigEndian.Uint64(a.first[4:]))
}

// isUnchanged reports whether the controller answers that nothing has changed.
func (a *reply) isUnchanged() bool {
	var rc message.RC
	return a.kind == message.ResponseRC && a.decode(&rc) == nil && rc.Code == fault.NoChange
}
