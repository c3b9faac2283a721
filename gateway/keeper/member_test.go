package keeper

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/auth/gatewaytoken"
	"schedrestd/auth/gatewaytoken/gatewaytokentest"
	"schedrestd/gateway/service"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// portalKeeper returns a keeper that has the register and knows SchedUser, whose uid
// is 2000.
func portalKeeper(t *testing.T, text string) *keeper {
	t.Helper()
	k := keeperOf(t, "")
	m := &work.TokenRegister{Cluster: gatewaytokentest.Cluster, Size: uint32(len(text)), MinUID: 1000, SchedUID: 2000, Privileged: []string{"root", "toor", "slurm"}}
	k.register.Store(readRegister(m, file(t, text)))
	return k
}

// portalToken returns a token of a portal, with changes.
func portalToken(t *testing.T, changes ...func(*gatewaytoken.Token)) string {
	t.Helper()
	return issue(t, append([]func(*gatewaytoken.Token){func(t *gatewaytoken.Token) { t.User, t.ActFor = "portal", "students" }}, changes...)...)
}

func questionFor(token, actAs string) *query.Exchange {
	q := questionOf(token)
	q.ActAs = actAs
	return q
}

// userOf returns the user of a bearer.
func userOf(t *testing.T, bearer []byte) string {
	t.Helper()
	parts := strings.Split(string(bearer), ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(payload), `"sun":"`)
	return strings.TrimSuffix(rest, `"}`)
}

// TestActing checks for whom a token of a portal is exchanged. The user's name comes
// from a worker, which an attacker may control, and the rest from the resolver.
func TestActing(t *testing.T) {
	const workerUID = 3000
	member := func(uid uint32) *query.Membership { return &query.Membership{Available: true, Member: true, UID: uid} }
	portal := portalToken(t)
	later := gatewayNow.Add(time.Hour)
	for _, tt := range []struct {
		name, register, token, actAs string
		at                           time.Time
		member                       *query.Membership // nil: the resolver is not asked
		want                         query.Verdict
	}{
		{"a member", "", portal, "alice", gatewayNow, member(1000), query.Genuine},
		{"a member with a high uid", "", portal, "alice", gatewayNow, member(4_000_000_000), query.Genuine},
		{"its own user, who is a member", "", portal, "portal", gatewayNow, member(1001), query.Genuine},
		{"its own user, who is none", "", portal, "portal", gatewayNow, &query.Membership{Available: true, UID: 1001}, query.NotForUser},
		{"not a member", "", portal, "bob", gatewayNow, &query.Membership{Available: true, UID: 1002}, query.NotForUser},
		{"an unknown user", "", portal, "zoe", gatewayNow, &query.Membership{Available: true, UID: ipc.NoID}, query.NotForUser},
		{"an unknown user, who is a member", "", portal, "zoe", gatewayNow, member(ipc.NoID), query.NotForUser},
		{"a user of the system", "", portal, "games", gatewayNow, member(999), query.NotForUser},
		{"another name of uid 0", "", portal, "admin", gatewayNow, member(0), query.NotForUser},
		{"nobody", "", portal, "nobody", gatewayNow, member(65534), query.NotForUser},
		{"another name of SchedUser", "", portal, "sched2", gatewayNow, member(2000), query.NotForUser},
		{"the user of the worker", "", portal, "gate", gatewayNow, member(workerUID), query.NotForUser},
		{"the user database is unavailable", "", portal, "alice", gatewayNow, &query.Membership{Member: true, UID: 1000}, query.NoVerdict},

		{"no name", "", portal, "", gatewayNow, nil, query.NotForUser},
		{"root", "", portal, "root", gatewayNow, nil, query.NotForUser},
		{"a second name of root", "", portal, "toor", gatewayNow, nil, query.NotForUser},
		{"SchedUser", "", portal, "slurm", gatewayNow, nil, query.NotForUser},
		{"a uid", "", portal, "0", gatewayNow, nil, query.NotForUser},
		{"another uid", "", portal, "1000", gatewayNow, nil, query.NotForUser},
		{"an option", "", portal, "-x", gatewayNow, nil, query.NotForUser},
		{"a quote", "", portal, `alice","sun":"root`, gatewayNow, nil, query.NotForUser},
		{"an escape", "", portal, `\u0072oot`, gatewayNow, nil, query.NotForUser},
		{"a colon", "", portal, "alice:x", gatewayNow, nil, query.NotForUser},
		{"a line end", "", portal, "alice\n", gatewayNow, nil, query.NotForUser},
		{"another alphabet", "", portal, "аlice", gatewayNow, nil, query.NotForUser},

		{"revoked", gatewaytoken.RevokeToken(gatewaytokentest.ID), portal, "alice", gatewayNow, nil, query.Revoked},
		{"its user's are revoked", gatewaytoken.RevokeBefore("portal", gatewayNow), portal, "alice", gatewayNow, nil, query.Revoked},
		{"the member's are revoked", gatewaytoken.RevokeBefore("alice", gatewayNow), portal, "alice", gatewayNow, nil, query.Revoked},
		{"another member's are revoked", gatewaytoken.RevokeBefore("bob", gatewayNow), portal, "alice", gatewayNow, member(1000), query.Genuine},
		{"expired", "", portal, "alice", later, nil, query.Forged},
		{"forged", "", portal[:len(portal)-4] + "AAAA", "alice", gatewayNow, nil, query.Forged},

		{"a token without act, another user", "", issue(t), "bob", gatewayNow, nil, query.NotForUser},
		{"a token without act, root", "", issue(t), "root", gatewayNow, nil, query.NotForUser},
		{"root's token without act, a user", "", issue(t, func(t *gatewaytoken.Token) { t.User = "root" }), "alice", gatewayNow, nil, query.NotForUser},
	} {
		k := portalKeeper(t, tt.register)
		q := questionFor(tt.token, tt.actAs)
		answer, ask := k.exchange(q, workerUID, tt.at, nil)
		if (ask != nil) != (tt.member != nil) {
			t.Errorf("%s: the resolver is asked %+v", tt.name, ask)
			continue
		}
		if ask != nil {
			if *ask != (query.AskMember{User: tt.actAs, Group: "students"}) || len(answer.Bearer) > 0 {
				t.Errorf("%s: %+v, %+v", tt.name, ask, answer)
			}
			answer, ask = k.exchange(q, workerUID, tt.at, tt.member)
		}
		want := ""
		if tt.want == query.Genuine {
			want = tt.actAs
		}
		if got := userOf(t, answer.Bearer); answer.Verdict != tt.want || got != want || ask != nil {
			t.Errorf("%s: verdict %d for %q, want %d", tt.name, answer.Verdict, got, tt.want)
		}
		// Whether the token is accepted is known without the resolver, and gives nothing.
		q.Check = true
		checked, ask := k.exchange(q, workerUID, tt.at, nil)
		if tt.member != nil {
			tt.want = query.Genuine
		}
		if checked.Verdict != tt.want || len(checked.Bearer) > 0 || ask != nil {
			t.Errorf("%s: checked, verdict %d %q", tt.name, checked.Verdict, checked.Bearer)
		}
	}
	defer func(uid uint32) { ownUID = uid }(ownUID)
	ownUID = 5000
	k := portalKeeper(t, "")
	if a, _ := k.exchange(questionFor(portal, "starter"), workerUID, gatewayNow, member(5000)); a.Verdict != query.NotForUser {
		t.Errorf("the user who started the gateway: verdict %d", a.Verdict)
	}
	k.register.Load().minUID = 0
	for uid, want := range map[uint32]query.Verdict{0: query.NotForUser, 1: query.Genuine} {
		if a, _ := k.exchange(questionFor(portal, "x"), workerUID, gatewayNow, member(uid)); a.Verdict != want {
			t.Errorf("uid %d without a lowest one: verdict %d", uid, a.Verdict)
		}
	}
}

// TestRevokedWhileTheResolverIsAsked checks that the answer of the resolver does not
// outweigh a revocation that comes before it.
func TestRevokedWhileTheResolverIsAsked(t *testing.T) {
	k := portalKeeper(t, "")
	q := questionFor(portalToken(t), "alice")
	if _, ask := k.exchange(q, 0, gatewayNow, nil); ask == nil {
		t.Fatal("the resolver is not asked")
	}
	sendRegister(t, k, gatewaytoken.RevokeToken(gatewaytokentest.ID))
	if a, _ := k.exchange(q, 0, gatewayNow, &query.Membership{Available: true, Member: true, UID: 1000}); a.Verdict != query.Revoked || len(a.Bearer) > 0 {
		t.Errorf("verdict %d, %q", a.Verdict, a.Bearer)
	}
}

// connectResolver connects a keeper with a resolver, and returns the resolver's end
// of the channel.
func connectResolver(t *testing.T, k *keeper) *ipc.Channel {
	t.Helper()
	end, fd, err := ipc.Pair(ipc.Resolver, ipc.Keeper)
	must(t, err)
	t.Cleanup(func() { end.Close() })
	must(t, k.members.connect(fd))
	return end
}

// connectWorker lets a keeper serve a worker, and returns the worker's end of the
// channel.
func connectWorker(t *testing.T, k *keeper) *ipc.Channel {
	t.Helper()
	end, fd, err := ipc.Pair(ipc.Worker, ipc.Keeper)
	must(t, err)
	own, err := ipc.Open(fd, ipc.Keeper, ipc.Worker)
	must(t, err)
	t.Cleanup(func() { end.Close() })
	go k.Serve(service.NewClient(work.WorkerChannel{Number: 1, UID: 3000}, own))
	return end
}

// fresh returns a token of a portal that is valid now.
func fresh(t *testing.T) string {
	return portalToken(t, func(t *gatewaytoken.Token) {
		t.Issued = time.Now().Truncate(time.Second)
		t.Expires = t.Issued.Add(time.Hour)
	})
}

// TestSlowResolver checks that a worker, and other workers, get answers to other
// questions while the resolver does not answer, and that a worker that asks for too
// much gets no verdict.
func TestSlowResolver(t *testing.T) {
	k := portalKeeper(t, "")
	connectResolver(t, k)
	w, other := connectWorker(t, k), connectWorker(t, k)
	token := fresh(t)
	for i := range uint64(limit.KeeperPending.Share + 1) {
		q := questionFor(token, fmt.Sprint("user", i))
		q.ID = i
		must(t, w.Send(q))
	}
	m, err := w.Receive()
	must(t, err)
	if a, ok := m.Message.(*query.Exchanged); !ok || a.ID != uint64(limit.KeeperPending.Share) || a.Verdict != query.NoVerdict {
		t.Errorf("the last of too many: %+v", m.Message)
	}
	for _, c := range []*ipc.Channel{w, other} {
		must(t, c.Send(&query.AskDigests{ID: 99}))
		m, err := c.Receive()
		must(t, err)
		if d, ok := m.Message.(*query.Digests); !ok || d.ID != 99 {
			t.Errorf("another question: %+v", m.Message)
		}
	}
}

// TestResolverChannel checks the answers of a keeper to a worker when the resolver
// answers, does not exist, is gone, or breaks the protocol. Only tokens of portals
// may depend on it.
func TestResolverChannel(t *testing.T) {
	plain := issue(t, func(t *gatewaytoken.Token) {
		t.Issued = time.Now().Truncate(time.Second)
		t.Expires = t.Issued.Add(time.Hour)
	})
	answerAll := func(c *ipc.Channel) {
		for {
			m, err := c.Receive()
			if err != nil {
				return
			}
			q := m.Message.(*query.AskMember)
			_ = c.Send(&query.Membership{ID: q.ID + 1000, Available: true, Member: true, UID: 1}) // to no question
			_ = c.Send(&query.Membership{ID: q.ID, Available: true, Member: q.User == "alice" && q.Group == "students", UID: 1000})
		}
	}
	for _, tt := range []struct {
		name    string
		prepare func(k *keeper)
		want    map[string]query.Verdict // by user
	}{
		{"answers", func(k *keeper) { go answerAll(connectResolver(t, k)) }, map[string]query.Verdict{"alice": query.Genuine, "bob": query.NotForUser}},
		{"replaced", func(k *keeper) { connectResolver(t, k); go answerAll(connectResolver(t, k)) }, map[string]query.Verdict{"alice": query.Genuine}},
		{"none", func(*keeper) {}, map[string]query.Verdict{"alice": query.NoVerdict}},
		{"gone", func(k *keeper) { connectResolver(t, k).Close() }, map[string]query.Verdict{"alice": query.NoVerdict}},
		{"breaks the protocol", func(k *keeper) {
			c := connectResolver(t, k)
			must(t, c.WithFD(func(fd int) error {
				_, err := unix.Write(fd, []byte{byte(ipc.KindOf(new(query.Membership))), 1})
				return err
			}))
			if _, err := c.Receive(); err == nil {
				t.Error("the keeper keeps the channel")
			}
		}, map[string]query.Verdict{"alice": query.NoVerdict}},
	} {
		k := portalKeeper(t, "")
		tt.prepare(k)
		w := connectWorker(t, k)
		ask := func(q *query.Exchange) *query.Exchanged {
			must(t, w.Send(q))
			m, err := w.Receive()
			must(t, err)
			return m.Message.(*query.Exchanged)
		}
		for user, want := range tt.want {
			if a := ask(questionFor(fresh(t), user)); a.Verdict != want || (len(a.Bearer) > 0) != (want == query.Genuine) {
				t.Errorf("%s, %s: verdict %d", tt.name, user, a.Verdict)
			}
		}
		if a := ask(questionOf(plain)); a.Verdict != query.Genuine {
			t.Errorf("%s: another token: verdict %d", tt.name, a.Verdict)
		}
	}
}

// TestMembersTakeTurns checks that questions for one worker do not keep those for
// others from the resolver.
func TestMembersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMembers()
		captured, honest := &client{}, &client{}
		var wg sync.WaitGroup
		defer wg.Wait()
		for range 50 {
			wg.Go(func() {
				place, err := m.places.Acquire(t.Context(), captured)
				must(t, err)
				time.Sleep(time.Second)
				place.Release()
			})
		}
		synctest.Wait()
		begun := time.Now()
		place, err := m.places.Acquire(t.Context(), honest)
		must(t, err)
		defer place.Release()
		if d := time.Since(begun); d > time.Second {
			t.Errorf("another worker waits for %v", d)
		}
	})
}

// TestSecondChannels checks that the dispatcher can't give the keeper channels of its
// own.
func TestSecondChannels(t *testing.T) {
	k := keeperOf(t, "")
	channels := func() (handled bool, err error) {
		_, parent, err := ipc.Pair(ipc.Acceptor, ipc.Keeper)
		must(t, err)
		_, resolver, err := ipc.Pair(ipc.Resolver, ipc.Keeper)
		must(t, err)
		return k.Handle(ipc.Received{Message: new(ipc.KeeperChannels), FDs: []int{parent, resolver}})
	}
	if handled, err := channels(); !handled || err != nil {
		t.Errorf("the first: %t, %v", handled, err)
	}
	if handled, err := channels(); !handled || err == nil {
		t.Errorf("the second: %t, %v", handled, err)
	}
}
