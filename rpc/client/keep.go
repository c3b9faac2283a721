package client

import (
	"context"
	"encoding/binary"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// store keeps answers of the controller for later calls that accept older data
// (package origin). The lock of rounds guards it.
type store struct {
	answers map[roundKey]*kept
	bytes   *semaphore.Queue[string, *kept] // a place is a byte of the answers, as the controller sent them; keys are holders; nil before the first one
	changes int                             // changes that this Client has made; an answer that was requested before the last one is not kept
}

// kept is an answer that is kept.
type kept struct {
	key    roundKey
	holder string
	answer *reply     // only shared, never read
	size   int        // with keptOverhead
	memory *Allowance // for the first piece, which needs none before, and for keptOverhead
	asked  time.Time  // when it was requested
	expiry *time.Timer
}

// maxKept limits the sum of the answers that are kept, relative to the budget.
// They take memory only until other answers need it.
const maxKept = 2

// keptOverhead is reserved for each answer that is kept, beside its content: for
// its key and several small objects. The memory for this and for the first pieces
// belongs to no user, because it never keeps others waiting.
const keptOverhead = 2 << 10

// isKeepable reports whether an answer can be kept. An error is not kept, because
// its cause may be gone at the next request.
func (a *reply) isKeepable() bool {
	return !a.streaming && a.kind != message.ResponseRC && a.kind != message.ResponseRCMessage
}

// recall returns an answer that was kept, or nil if there is none that was
// requested at a time that accepts allows.
func (rs *rounds) recall(key roundKey, now time.Time, accepts func(asked time.Time) bool) *reply {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	k := rs.kept.answers[key]
	if k == nil || !accepts(k.asked) {
		return nil
	}
	answer := k.answer.another()
	answer.age = now.Sub(k.asked)
	return answer
}

// keepLocked keeps an answer for the given time after it was requested. It
// takes over the answer, and discards it if it is too long, or if there is no
// memory for it in the budget. If others have to make room, these are answers
// to the user who has most, so that one with many requests does not remove the
// answers to all others.
func (rs *rounds) keepLocked(key roundKey, holder string, answer *reply, asked time.Time, lifetime time.Duration, budget *Budget) {
	store := limit.KeptAnswers.Of(maxKept * budget.size)
	if rs.kept.answers == nil {
		rs.kept.answers, rs.kept.bytes = map[roundKey]*kept{}, semaphore.NewQueue[string, *kept](store, nil)
	}
	k := &kept{key: key, holder: holder, answer: answer, size: len(answer.first) + answer.remaining + keptOverhead, asked: asked, memory: budget.allowance("")}
	rs.discardLocked(rs.kept.answers[key])
	if k.size > store.Total { // no room that others make would suffice
		answer.release()
		return
	}
	hasMemory := func() bool { // acquire would lock rounds
		ok, _ := k.memory.tryAcquire(cap(answer.first) + keptOverhead)
		return ok
	}
	for rs.kept.bytes.Free() < k.size || !hasMemory() {
		victim, ok := rs.kept.bytes.Most()
		if !ok {
			answer.release()
			return
		}
		rs.discardLocked(victim)
	}
	k.expiry = time.AfterFunc(time.Until(asked.Add(lifetime)), func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		rs.discardLocked(k)
	})
	rs.kept.answers[key] = k
	rs.kept.bytes.Hold(holder, k.size)
	rs.kept.bytes.Push(holder, k)
}

// discardLocked discards an answer that is kept, unless that has happened
// already.
func (rs *rounds) discardLocked(k *kept) {
	if k == nil || rs.kept.answers[k.key] != k {
		return
	}
	k.expiry.Stop()
	delete(rs.kept.answers, k.key)
	rs.kept.bytes.Remove(k.holder, k)
	rs.kept.bytes.Hold(k.holder, -k.size)
	k.memory.Release()
	k.answer.release()
}

// changed makes all answers that were requested so far useless for later calls,
// because the Client has made a change.
func (rs *rounds) changed() {
	rs.mu.Lock()
	rs.kept.changes++
	rs.mu.Unlock()
	rs.free("")
}

// free discards all answers to a holder, or to any if it is "". It returns false if
// there are none.
func (rs *rounds) free(holder string) (freed bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, k := range rs.kept.answers {
		if holder == "" || holder == k.holder {
			rs.discardLocked(k)
			freed = true
		}
	}
	return freed
}

// datedLifetime is how long the answer to a request with a dated body is used, from
// the time when the controller sent it. It is not longer, because "no change" may
// be wrong: slurmctld does not date all changes, and after a failover the clock of
// the other controller may be wrong. It is not shorter, because lists that take
// seconds are asked for less often.
const datedLifetime = 15 * time.Second

// askDated sends a request. If an answer to it is kept, and r has a dated body,
// askDated asks only for what has changed since, and returns the answer that is
// kept if nothing has.
func (c *Client) askDated(ctx context.Context, key roundKey, cred model.Credential, r request) (*reply, error) {
	if r.dated == nil {
		return c.askAlone(ctx, cred, r)
	}
	now := c.now()
	old := c.rounds.recall(key, now, func(asked time.Time) bool { return !asked.After(now) && now.Sub(asked) < datedLifetime })
	if old != nil && now.Sub(old.sent) >= datedLifetime {
		old.release()
		old = nil
	}
	if old != nil {
		r.body = r.dated(old.lastUpdate())
	}
	answer, err := c.askAlone(ctx, cred, r)
	switch {
	case err != nil:
	case old != nil && answer.isUnchanged():
		answer.release()
		old.age = 0
		return old, nil
	default:
		answer.sent = now
	}
	if old != nil {
		old.release()
	}
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
