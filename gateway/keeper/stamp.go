package keeper

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/rpc/payload"
)

// A body is a message to a daemon, as far as the worker has sent it.
type body struct {
	kind uint16
	hash *payload.Hash
	head []byte // its first bytes, by which scope.PermitRPC decides
}

const headSize = 2

// add adds a part of the body of a message of this type.
func (b *body) add(kind uint16, part []byte) error {
	if b.hash == nil {
		*b = body{kind: kind, hash: payload.New(kind)}
	}
	if kind != b.kind {
		return errMixed
	}
	if len(b.head) < headSize {
		b.head = append(b.head, part[:min(len(part), headSize-len(b.head))]...)
	}
	b.hash.Write(part)
	return nil
}

var errMixed = errors.New("sent parts of two messages as one")

// users asks the resolver about the users of gateway tokens, and processes of these
// users for credentials.
type users struct {
	pending *semaphore.Semaphore[uint32] // a place is a message that waits for its credential; keys are uids

	mu        sync.Mutex // guards the fields below
	known     map[query.AskMember]knownUser
	processes map[uint32]*process // by uid
}

// A knownUser is the resolver's answer about a user.
type knownUser struct {
	*query.Membership
	asked time.Time
}

// A process gets the credentials of a user.
type process struct {
	link    *link[*query.GotCredential] // nil: it has not started yet
	started chan struct{}               // closed when it has, or will not
	refused string                      // why it will not start; "": it has, or may
	ended   time.Time                   // when it was refused
	told    map[uint32]time.Time        // which workers have to have it started, and since when
	used    time.Time                   // when it was last needed
}

const (
	knownTime = 10 * time.Second // for the resolver's answers
	staleTime = 10 * time.Minute // … while it does not answer

	// refusedTime is how long a refusal of the dispatcher counts, also for the messages
	// of other workers.
	refusedTime = 2 * time.Second

	stampTime = 10 * time.Second // for a credential, for which a process may have to start; less than a worker waits

	maxKnown = 4096

	// maxProcesses is the number of processes above which the one that has not been needed
	// for the longest time ends. The dispatcher permits a few more (limit.CredentialProcesses).
	maxProcesses = 200
)

func newUsers() *users {
	return &users{pending: semaphore.New[uint32](limit.KeeperStamps), known: map[query.AskMember]knownUser{}, processes: map[uint32]*process{}}
}

// find asks the resolver about a user, unless it has answered a moment ago. While it does
// not answer, a user stays known, but not as the member of a group.
func (u *users) find(m *members, c *client, ask query.AskMember, now time.Time) *query.Membership {
	u.mu.Lock()
	known, ok := u.known[ask]
	u.mu.Unlock()
	if ok && now.Sub(known.asked) < knownTime {
		return known.Membership
	}
	key := ask
	found := m.ask(c, &ask)
	switch {
	case !found.Available && ok && ask.Group == "" && now.Sub(known.asked) < staleTime:
		return known.Membership
	case !found.Available || found.UID == ipc.NoID:
		return found
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.known) >= maxKnown {
		clear(u.known)
	}
	u.known[key] = knownUser{found, now}
	return found
}

// of returns the process of a user. If missing is true, there is none, and this worker has
// to have one started.
func (u *users) of(uid, worker uint32, now time.Time) (p *process, missing bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p = u.processes[uid]
	if p == nil || p.link != nil && p.link.isClosed() || p.refused != "" && now.Sub(p.ended) >= refusedTime {
		p = u.addLocked(uid)
	}
	if p.used = now; p.link != nil || p.refused != "" {
		return p, false
	}
	told, ok := p.told[worker]
	if missing = !ok || now.Sub(told) >= stampTime; missing {
		p.told[worker] = now
	}
	return p, missing
}

// addLocked adds a process that has not started, in place of an earlier one of the user. If
// there are too many, it ends another one, or forgets one that has not started.
func (u *users) addLocked(uid uint32) *process {
	delete(u.processes, uid)
	if len(u.processes) >= maxProcesses {
		var oldest uint32
		for uid, p := range u.processes {
			if o := u.processes[oldest]; o == nil || p.used.Before(o.used) {
				oldest = uid
			}
		}
		if l := u.processes[oldest].link; l != nil {
			_ = l.channel.Shutdown()
		}
		delete(u.processes, oldest)
	}
	p := &process{started: make(chan struct{}), told: map[uint32]time.Time{}}
	u.processes[uid] = p
	return p
}

// connect makes the descriptor fd the channel to the process of a user. It replaces an
// older one.
func (u *users) connect(uid uint32, fd int) error {
	l, err := newLink[*query.GotCredential](fd, ipc.Credential)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.processes[uid]
	if p == nil || p.link != nil || p.refused != "" {
		if p != nil && p.link != nil {
			_ = p.link.channel.Shutdown()
		}
		p = u.addLocked(uid)
		p.used = time.Now()
	}
	p.link = l
	close(p.started)
	return nil
}

// refuse ends the wait for a process that will not start. A captured dispatcher can do
// this, too: it decides whether a process starts, but never for which messages.
func (u *users) refuse(uid uint32, reason string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p := u.processes[uid]; p != nil && p.link == nil && p.refused == "" {
		p.refused, p.ended = cmp.Or(reason, "the dispatcher gives no reason"), time.Now()
		close(p.started)
	}
}

// gatewayUser returns what the resolver knows about the user of a gateway token, who may
// be one for whom it acts, and when the token ends. The verdict is not Genuine if the
// token is not accepted, or permits returns false.
func (k *keeper) gatewayUser(c *client, e *query.Exchange, now time.Time, permits func(scope.Set) bool) (user *query.Membership, end time.Time, verdict query.Verdict) {
	e.Check = true
	if exchanged, _ := k.exchange(e, c.UID, now, nil); exchanged.Verdict != query.Genuine {
		return nil, end, exchanged.Verdict
	}
	t, err := gatewaytoken.ParseSigned(e.Signed)
	if err != nil || !permits(t.Scopes) {
		return nil, end, query.NotInScope
	}
	ask := query.AskMember{User: t.User, Groups: true}
	if t.ActFor != "" {
		ask.User, ask.Group = e.ActAs, t.ActFor
	}
	found := k.users.find(k.members, c, ask, now)
	switch {
	case !found.Available:
		return nil, end, query.NoVerdict
	case found.UID == ipc.NoID || t.ActFor == "" && t.UID != nil && *t.UID != found.UID:
		return nil, end, query.NotForUser
	case t.ActFor != "":
		e.Check = false
		exchanged, _ := k.exchange(e, c.UID, now, found)
		return found, t.Expires, exchanged.Verdict
	}
	return found, t.Expires, query.Genuine
}

// stamp answers with a credential for the message b, if the gateway token is accepted and
// permits messages of this type. This process signs it, if it has the key. Otherwise the
// process of the user gets it, to which only this process has a channel.
func (k *keeper) stamp(c *client, q *query.Stamp, b *body, now time.Time) *query.Stamped {
	answer := &query.Stamped{ID: q.ID}
	if !k.stamps.Load() {
		return answer
	}
	var user *query.Membership
	var end time.Time
	user, end, answer.Verdict = k.gatewayUser(c, &query.Exchange{Signed: q.Signed, MAC: q.MAC, ActAs: q.ActAs}, now,
		func(s scope.Set) bool { return s.PermitRPC(b.kind, b.head) })
	if answer.Verdict != query.Genuine {
		return answer
	}
	r := k.register.Load()
	if r == nil || !r.mayRun(user.UID, c.UID) {
		answer.Verdict = query.NotForUser
		return answer
	}
	if key := k.signing.Load(); key != nil {
		answer.Credential = key.sign(user, r, b.hash.Payload(), now, end)
		return answer
	}
	place := k.users.pending.Empty(user.UID)
	if !place.Grow(1) { // a user can stop the process, which must not delay the messages of others
		answer.Reason = "too many messages of this user wait for credentials"
		return answer
	}
	defer place.Release()
	ctx, cancel := context.WithTimeout(context.Background(), stampTime)
	defer cancel()
	question := &query.GetCredential{Accounting: b.kind == scope.PersistInit}
	copy(question.Payload[:], b.hash.Payload())
	for again := false; ; again = true {
		client := k.vouches.vouch(user, true, now) // also while the process runs: the parent ends it otherwise
		if client == 0 {
			answer.Reason = "the parent permits no process as this user: the user is one of the gateway's own, or too many users have tokens in use"
			return answer
		}
		p, missing := k.users.of(user.UID, c.Number, now)
		if missing {
			answer.Client, answer.UID, answer.Reason = client, user.UID, ""
			return answer
		}
		answer.Credential, answer.Reason = p.ask(ctx, question)
		if answer.Reason == "" || again || !p.isOver() { // otherwise it ended because it had nothing to do
			return answer
		}
	}
}

// isOver reports whether the process has started and exited.
func (p *process) isOver() bool {
	select {
	case <-p.started:
		return p.link != nil && p.link.isClosed()
	default:
		return false
	}
}

// ask asks the process for a credential, and returns it, or the reason why there is none.
func (p *process) ask(ctx context.Context, q *query.GetCredential) (credential []byte, reason string) {
	select {
	case <-p.started:
	case <-ctx.Done():
		return nil, "the process of the user has not started in time"
	}
	if p.link == nil {
		return nil, "no process of the user: " + p.refused
	}
	got, ok := p.link.ask(ctx, func(id uint64) ipc.Message {
		q.ID = id
		return q
	})
	if !ok {
		return nil, "the process of the user has not answered"
	}
	return got.Credential, got.Reason
}
