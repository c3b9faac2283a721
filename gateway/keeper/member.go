package keeper

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"schedrestd/auth/gatewaytoken"
	"schedrestd/become"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// ownUID is the uid of this process, which is that of a user if root did not start
// the gateway.
var ownUID = uint32(os.Getuid())

// canBeMember reports whether a token of a portal may act for a user with this
// name, as far as the name shows. Slurm's daemons take a name of digits for a uid,
// so "0" would be root.
func (r *register) canBeMember(name string) bool {
	return gatewaytoken.IsUser(name) && strings.Trim(name, "0123456789") != "" && name != "root" && !slices.Contains(r.privileged, name)
}

// permits reports whether a token of a portal may act for the user that the
// resolver has found. A worker has no part in this: an attacker who controls one
// names any user, and could act for each of them with a stolen token.
func (r *register) permits(m *query.Membership, worker uint32) bool {
	return m.Member && r.mayRun(m.UID, worker)
}

// mayRun reports whether the gateway acts for a user with this uid, as far as the keeper
// knows.
func (r *register) mayRun(uid, worker uint32) bool {
	switch uid {
	case 0, ipc.NoID, become.Overflow, r.schedUID, ownUID, worker:
		return false
	}
	return uid >= r.minUID
}

// members asks the resolver which users are members of a group. The parent makes the
// channel.
type members struct {
	pending *semaphore.Semaphore[*client] // a place is a token that waits
	places  *semaphore.Semaphore[*client] // a place is a question that the resolver has
	link    atomic.Pointer[link[*query.Membership]]
}

const memberTimeout = 8 * time.Second // a little less than a worker waits

func newMembers() *members {
	return &members{pending: semaphore.New[*client](limit.KeeperPending), places: semaphore.New[*client](limit.KeeperQuestions)}
}

// connect makes the descriptor fd the channel to the resolver.
func (m *members) connect(fd int) error {
	l, err := newLink[*query.Membership](fd, ipc.Resolver)
	if old := m.link.Swap(l); old != nil {
		old.channel.Close()
	}
	return err
}

// ask asks the resolver on behalf of a worker, and waits for the answer. Workers
// take turns. Without an answer, the user database counts as unavailable.
func (m *members) ask(c *client, q *query.AskMember) *query.Membership {
	ctx, cancel := context.WithTimeout(context.Background(), memberTimeout)
	defer cancel()
	unavailable := &query.Membership{}
	place, err := m.places.Acquire(ctx, c)
	if err != nil {
		return unavailable
	}
	defer place.Release()
	l := m.link.Load()
	if l == nil {
		return unavailable
	}
	found, ok := l.ask(ctx, func(id uint64) ipc.Message {
		q.ID = id
		return q
	})
	if !ok {
		return unavailable
	}
	return found
}

// exchange answers a question about a gateway token. If the resolver has to be
// asked, the worker's next questions don't wait for it.
func (c *client) exchange(e *query.Exchange) {
	k := c.keeper
	answer, ask := k.exchange(e, c.UID, time.Now(), nil)
	if ask == nil {
		c.AnswerInTurn(k.counts.countExchange(answer))
		return
	}
	c.throttle(exchangeCost) // for the second time that the token is verified
	c.inBackground(func() ipc.Message {
		answer, _ := k.exchange(e, c.UID, time.Now(), k.members.ask(c, ask))
		return k.counts.countExchange(answer)
	}, func() ipc.Message { return k.counts.countExchange(&query.Exchanged{ID: e.ID}) })
}

// inBackground sends the answer that f returns. A worker that has too many of such
// questions gets the answer of full at once.
func (c *client) inBackground(f, full func() ipc.Message) {
	place := c.keeper.members.pending.Empty(c)
	if !place.Grow(1) {
		c.AnswerInTurn(full())
		return
	}
	go func() {
		defer place.Release()
		c.Answer(f())
	}()
}
