package keys

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// gatewayToken returns a gateway token, with any signature.
func gatewayToken(t *testing.T) string {
	t.Helper()
	issued := time.Unix(1_700_000_000, 0)
	text, err := gatewaytoken.Sign(gatewaytoken.Token{Cluster: "c", User: "alice", Scopes: scope.ComputeRead, ID: gatewaytoken.NewID(),
		Issued: issued, Expires: issued.Add(time.Hour)}, make([]byte, 32))
	must(t, err)
	return text
}

// A script answers as a keeper does.
type script struct {
	mu       sync.Mutex               // guards the fields below
	verdicts map[string]query.Verdict // by the token without its signature; Genuine for others
	members  map[string]bool          // users for whom tokens act; nil for all
	asked    int
}

func (s *script) set(v query.Verdict, tokens ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range tokens {
		s.verdicts[token[:strings.LastIndexByte(token, '.')]] = v
	}
}

// count returns how many tokens were asked about since the last call.
func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.asked = 0 }()
	return s.asked
}

// setMembers makes these users those as whom a portal may act.
func (s *script) setMembers(users ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = map[string]bool{}
	for _, user := range users {
		s.members[user] = true
	}
}

func (s *script) answer(m ipc.Message) ipc.Message {
	q := m.(*query.Exchange)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	a := &query.Exchanged{ID: q.ID, Verdict: query.Genuine}
	if v, ok := s.verdicts[string(q.Signed)]; ok {
		a.Verdict = v
	}
	if a.Verdict == query.Genuine && !q.Check {
		if a.Bearer = fmt.Appendf(nil, "bearer %d%s", s.asked, q.ActAs); s.members != nil && q.ActAs != "" && !s.members[q.ActAs] {
			a.Verdict, a.Bearer = query.NotForUser, nil
		}
	}
	return a
}

// scripted returns Keys with a keeper that follows a script. They do not follow the
// register themselves.
func scripted(t *testing.T) (*Keys, *script) {
	t.Helper()
	k, s := New(), &script{verdicts: map[string]query.Verdict{}}
	k.gateway.watch.Do(func() {})
	c := keeperEnd(t, k.keeper)
	go func() {
		for {
			m, err := c.Receive()
			if err != nil {
				return
			}
			_ = c.Send(s.answer(m.Message))
		}
	}()
	return k, s
}

// TestBearer checks that a bearer is used again until the keeper decides by
// something else, and what the errors are.
func TestBearer(t *testing.T) {
	k, s := scripted(t)
	token, other := gatewayToken(t), gatewayToken(t)
	bearer := func(token, want string) {
		t.Helper()
		if got, err := k.Bearer(t.Context(), token, ""); got != want || err != nil {
			t.Errorf("bearer %q, %v; want %q", got, err, want)
		}
	}
	bearer(token, "bearer 1")
	bearer(token, "bearer 1")
	bearer(other, "bearer 2")
	bearer(token, "bearer 1")
	if !k.gateway.checkAll(true) {
		t.Error("the check is not complete")
	}
	bearer(token, "bearer 3")
	bearer(token[:len(token)-43]+strings.Repeat("A", 43), "bearer 4") // another signature is another token

	for verdict, want := range map[query.Verdict]errs.Kind{query.Forged: errs.Unauthenticated, query.Revoked: errs.Unauthenticated,
		query.NoVerdict: errs.Unavailable, query.Outdated: errs.Unavailable} {
		s.set(verdict, token)
		k.gateway.checkAll(true)
		if got, err := k.Bearer(t.Context(), token, ""); got != "" || errs.KindOf(err) != want {
			t.Errorf("verdict %d: %q, %v", verdict, got, err)
		}
	}
	if got, err := k.Bearer(t.Context(), "eyJhbGciOiJIUzI1NiJ9.e30.AAAA", ""); got != "" || errs.KindOf(err) != errs.Internal {
		t.Errorf("a token of the cluster: %q, %v", got, err)
	}
}

// TestBearerExpires checks that a bearer is exchanged again long before its end.
func TestBearerExpires(t *testing.T) {
	k, s := scripted(t)
	signature, err := splitToken(gatewayToken(t))
	must(t, err)
	now := time.Now()
	for _, tt := range []struct {
		after time.Duration
		asked int
	}{{0, 1}, {bearerUse - 1, 0}, {bearerUse, 1}, {bearerUse + 1, 0}} {
		if _, answer := k.gateway.exchange(t.Context(), signature, "", now.Add(tt.after)); answer != auth.Good || s.count() != tt.asked {
			t.Errorf("after %v: answer %d", tt.after, answer)
		}
	}
}

// TestRevokedDuringExchange checks that the answer to a question that was asked
// before a revocation is not used after it.
func TestRevokedDuringExchange(t *testing.T) {
	k := New()
	k.gateway.watch.Do(func() {})
	c := keeperEnd(t, k.keeper)
	token := gatewayToken(t)
	done := make(chan error)
	ask := func(verdict query.Verdict, meanwhile func()) error {
		go func() {
			_, err := k.Bearer(t.Context(), token, "")
			done <- err
		}()
		m, err := c.Receive()
		must(t, err)
		meanwhile()
		must(t, c.Send(&query.Exchanged{ID: m.Message.(*query.Exchange).ID, Verdict: verdict, Bearer: []byte("b")}))
		return <-done
	}
	must(t, ask(query.Genuine, func() { k.gateway.checkAll(true) }))
	if err := ask(query.Revoked, func() {}); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("after the revocation: %v", err)
	}
}

// TestWatch checks that those who use a token that is refused learn it once, that
// they may end their interest then, and that others learn nothing.
func TestWatch(t *testing.T) {
	k, s := scripted(t)
	g := k.gateway
	tokens := make([]string, 1000) // as many clients wait, each with a token of its own
	told := map[string]int{}
	ends := map[string][]func(){}
	watch := func(token string) {
		end := new(func())
		*end = k.Watch(token, "", func(auth.Answer) { told[token]++; (*end)() })
		ends[token] = append(ends[token], *end)
	}
	for i := range tokens {
		tokens[i] = gatewayToken(t)
		watch(tokens[i])
	}
	kept, left, revoked := tokens[0], tokens[1], tokens[2:]
	watch(revoked[0]) // two clients with the same token
	watch(left)
	for _, end := range ends[left] {
		end()
		end() // does nothing
	}

	s.set(query.NoVerdict, tokens...)
	if g.checkAll(true) || len(told) != 0 || len(g.used) != 999 {
		t.Errorf("the keeper had no time: %d ends, %d are in use", len(told), len(g.used))
	}
	s.set(query.Revoked, tokens...)
	s.set(query.Genuine, kept)
	for range 2 { // they learn it only once
		if !g.checkAll(true) {
			t.Error("the check is not complete")
		}
	}
	want := map[string]int{}
	for _, token := range revoked {
		want[token] = 1
	}
	want[revoked[0]] = 2
	if !maps.Equal(told, want) || len(g.used) != 1 {
		t.Errorf("%d ends, want %d; %d tokens are in use", len(told), len(want), len(g.used))
	}

	clear(told)
	watch(revoked[1]) // a request that is about to be refused
	s.set(query.NoVerdict, tokens...)
	g.checkAll(false) // the keeper has no register
	if got := slices.Sorted(maps.Keys(told)); !slices.Equal(got, slices.Sorted(slices.Values([]string{kept, revoked[1]}))) {
		t.Errorf("without a register, %d ends", len(got))
	}
	for _, list := range ends {
		for _, end := range list {
			end()
		}
	}
	if len(g.used) != 0 {
		t.Errorf("%d tokens are in use in the end", len(g.used))
	}
	k.Watch("not a gateway token", "", func(auth.Answer) { t.Error("a revocation of no gateway token") })()
	g.checkAll(false)
}

// TestFollowRegister checks that a revocation is noticed without a request.
func TestFollowRegister(t *testing.T) {
	k := New()
	c := keeperEnd(t, k.keeper)
	register, verdict := "1", query.Genuine
	var mu sync.Mutex // guards the two
	go func() {
		for {
			m, err := c.Receive()
			if err != nil {
				return
			}
			mu.Lock()
			switch q := m.Message.(type) {
			case *query.AskDigests:
				_ = c.Send(&query.Digests{ID: q.ID, Key: "0", Register: register})
			case *query.Exchange:
				_ = c.Send(&query.Exchanged{ID: q.ID, Verdict: verdict, Bearer: []byte("b")})
			}
			mu.Unlock()
		}
	}()
	token, told := gatewayToken(t), make(chan auth.Answer, 1)
	defer k.Watch(token, "", func(a auth.Answer) { told <- a })()
	if _, err := k.Bearer(t.Context(), token, ""); err != nil {
		t.Fatal(err)
	}
	if line := k.Digests(t.Context()); line != "gateway tokens: key 0, register 1" {
		t.Errorf("the line is %q", line)
	}
	set := func(digest string, v query.Verdict) {
		mu.Lock()
		defer mu.Unlock()
		register, verdict = digest, v
	}
	set("none", query.NoVerdict)
	if <-told != auth.Unknown {
		t.Error("a token is revoked because there is no register")
	}
	set("1", query.Genuine)
	for {
		if _, err := k.Bearer(t.Context(), token, ""); err == nil {
			break
		}
	}
	defer k.Watch(token, "", func(a auth.Answer) { told <- a })()
	set("2", query.Revoked)
	if <-told != auth.Revoked {
		t.Error("a revocation is taken for a lack of the register")
	}
	if _, err := k.Bearer(t.Context(), token, ""); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("revoked: %v", err)
	}
}

// TestBearersOfPortal checks that a token of a portal has a bearer for each user, and
// that what it does as one user ends when it no longer acts for this user.
func TestBearersOfPortal(t *testing.T) {
	k, s := scripted(t)
	s.setMembers("alice", "bob")
	token, left := gatewayToken(t), fmt.Sprint("alice ", auth.NotForUser)
	told := map[string]int{}
	for _, user := range []string{"alice", "bob"} {
		defer k.Watch(token, user, func(a auth.Answer) { told[fmt.Sprint(user, " ", a)]++ })()
		for range 2 {
			if got, err := k.Bearer(t.Context(), token, user); err != nil || !strings.HasSuffix(got, user) {
				t.Errorf("%s: %q, %v", user, got, err)
			}
		}
	}
	if n := s.count(); n != 2 {
		t.Errorf("%d questions for two users", n)
	}
	if got, err := k.Bearer(t.Context(), token, "eve"); got != "" || errs.KindOf(err) != errs.Denied {
		t.Errorf("eve: %q, %v", got, err)
	}
	k.gateway.checkMembers()
	if n := s.count(); n != 1 || len(told) != 0 { // eve's
		t.Errorf("%d questions, %v", n, told)
	}
	s.mu.Lock()
	delete(s.members, "alice")
	s.mu.Unlock()
	k.gateway.mu.Lock()
	k.gateway.bearers = nil // they are older than bearerUse
	k.gateway.mu.Unlock()
	k.gateway.checkMembers()
	k.gateway.checkMembers()
	if !maps.Equal(told, map[string]int{left: 1}) {
		t.Errorf("alice has left the group: %v", told)
	}
	s.set(query.Revoked, token)
	if !k.gateway.checkAll(true) || !maps.Equal(told, map[string]int{left: 1, fmt.Sprint("bob ", auth.Revoked): 1}) {
		t.Errorf("the token is revoked: %v", told)
	}
}
