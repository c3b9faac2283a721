package keeper

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/auth/gatewaytoken/gatewaytokentest"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

var gatewayNow = time.Unix(1_700_000_000, 700_000_000)

// keeperOf returns a keeper with the key of the tests' gateway tokens, and with this
// register.
func keeperOf(t *testing.T, register string) *keeper {
	t.Helper()
	k := newKeeper(nil)
	sendToken(t, k, string(gatewaytokentest.Secret), true)
	sendRegister(t, k, register)
	return k
}

func sendRegister(t *testing.T, k *keeper, text string) {
	t.Helper()
	k.register.Store(readRegister(&work.TokenRegister{Cluster: gatewaytokentest.Cluster, Size: uint32(len(text))}, file(t, text)))
}

// questionOf returns the question about a token, as a worker asks it. It returns nil
// for a token that has no signature of the right length.
func questionOf(token string) *query.Exchange {
	end := strings.LastIndexByte(token, '.')
	signature, err := base64.RawURLEncoding.DecodeString(token[end+1:])
	q := &query.Exchange{ID: 7, Signed: []byte(token[:end])}
	if err != nil || len(signature) != len(q.MAC) {
		return nil
	}
	copy(q.MAC[:], signature)
	return q
}

// exchanged returns the answer to a question about a token for which the resolver is
// not asked.
func exchanged(k *keeper, q *query.Exchange, now time.Time) *query.Exchanged {
	answer, ask := k.exchange(q, 0, now, nil)
	if ask != nil {
		panic("the resolver is asked")
	}
	return answer
}

// issue returns a gateway token that is right, with changes.
func issue(t *testing.T, changes ...func(*gatewaytoken.Token)) string {
	t.Helper()
	token := gatewaytoken.Token{Cluster: gatewaytokentest.Cluster, User: "alice", Scopes: scope.ComputeRead, ID: gatewaytokentest.ID,
		Issued: gatewayNow.Truncate(time.Second), Expires: gatewayNow.Truncate(time.Second).Add(time.Hour)}
	for _, change := range changes {
		change(&token)
	}
	text, err := gatewaytoken.Sign(token, gatewaytokentest.Secret)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestHostileForms checks that the keeper, which does not trust what a worker has
// checked, refuses what is not written as a gateway token is.
func TestHostileForms(t *testing.T) {
	k := keeperOf(t, "")
	if a := exchanged(k, questionOf(gatewaytokentest.Good(gatewayNow)), gatewayNow); a.Verdict != query.Genuine || len(a.Bearer) == 0 {
		t.Fatalf("the token that is right: %+v", a)
	}
	for _, f := range gatewaytokentest.Forms(gatewayNow) {
		q := questionOf(f.Token)
		if f.By == gatewaytokentest.Worker {
			continue
		}
		if q == nil {
			t.Errorf("%s: a worker can't ask about it", f.Name)
			continue
		}
		if a := exchanged(k, q, gatewayNow); a.Verdict != query.Forged || a.Bearer != nil || a.ID != 7 {
			t.Errorf("%s: verdict %d, %q", f.Name, a.Verdict, a.Bearer)
		}
	}
}

// TestExchange checks when a gateway token is exchanged, and for what.
func TestExchange(t *testing.T) {
	second := func(n int) time.Time { return gatewayNow.Truncate(time.Second).Add(time.Duration(n) * time.Second) }
	good := issue(t)
	created := gatewaytoken.Token{ID: gatewaytokentest.ID, User: "alice", Scopes: scope.ComputeRead, Issued: second(0), Expires: second(3600)}
	other := func() *keeper {
		k := newKeeper(nil)
		sendToken(t, k, otherKey, true)
		sendRegister(t, k, "")
		return k
	}
	noKey, noRegister, unfollowed := newKeeper(nil), keeperOf(t, ""), newKeeper(nil)
	sendRegister(t, noKey, "")
	noRegister.register.Store(nil)
	sendToken(t, unfollowed, otherKey, false)
	sendRegister(t, unfollowed, "")
	for _, tt := range []struct {
		name   string
		keeper *keeper
		token  string
		at     time.Time
		want   query.Verdict
	}{
		{"good", keeperOf(t, ""), good, gatewayNow, query.Genuine},
		{"good, with the line of its creation", keeperOf(t, created.Line()), good, gatewayNow, query.Genuine},
		{"no key", noKey, good, gatewayNow, query.NoVerdict},
		{"no register", noRegister, good, gatewayNow, query.NoVerdict},
		{"a wrong register", keeperOf(t, "revoke it\n"), good, gatewayNow, query.NoVerdict},
		{"half a line", keeperOf(t, "revoke token "), good, gatewayNow, query.NoVerdict},
		{"another key", other(), good, gatewayNow, query.Forged},
		{"another key, which may be replaced", unfollowed, good, gatewayNow, query.Outdated},
		{"the last moment", keeperOf(t, ""), good, second(3600).Add(-1), query.Genuine},
		{"expired", keeperOf(t, ""), good, second(3600), query.Forged},
		{"issued by a clock that is ahead", keeperOf(t, ""), good, second(-5), query.Genuine},
		{"issued in the future", keeperOf(t, ""), good, second(-5).Add(-1), query.Forged},
		{"another cluster", keeperOf(t, ""), issue(t, func(t *gatewaytoken.Token) { t.Cluster = "C" }), gatewayNow, query.Forged},
		{"revoked", keeperOf(t, gatewaytoken.RevokeToken(gatewaytokentest.ID)), good, gatewayNow, query.Revoked},
		{"another one is revoked", keeperOf(t, gatewaytoken.RevokeToken(gatewaytoken.NewID())), good, gatewayNow, query.Genuine},
		{"its user's are revoked", keeperOf(t, gatewaytoken.RevokeBefore("alice", gatewayNow)), good, gatewayNow, query.Revoked},
		{"another user's are revoked", keeperOf(t, gatewaytoken.RevokeBefore("bob", gatewayNow)), good, gatewayNow, query.Genuine},
		{"all are revoked", keeperOf(t, gatewaytoken.RevokeBefore("", gatewayNow)), good, gatewayNow, query.Revoked},
		{"earlier ones are revoked", keeperOf(t, gatewaytoken.RevokeBefore("", second(-1))), good, gatewayNow, query.Genuine},
		{"revoked and expired", keeperOf(t, gatewaytoken.RevokeToken(gatewaytokentest.ID)), good, second(3600), query.Forged},
	} {
		a := exchanged(tt.keeper, questionOf(tt.token), tt.at)
		if a.Verdict != tt.want || (len(a.Bearer) > 0) != (tt.want == query.Genuine) {
			t.Errorf("%s: verdict %d, %q", tt.name, a.Verdict, a.Bearer)
		}
	}
}

// TestRegisterChanges checks what the keeper does with a register that has changed
// since the dispatcher has read it: what it lacks now must not permit a token.
func TestRegisterChanges(t *testing.T) {
	line := gatewaytoken.RevokeToken(gatewaytokentest.ID)
	for _, tt := range []struct {
		name, text string
		size       int
		want       query.Verdict
	}{
		{"the same", line, len(line), query.Revoked},
		{"emptied", "", len(line), query.NoVerdict},
		{"shorter, to a line end", "#\n", 2 + len(line), query.NoVerdict},
		{"longer", line + "# half a li", len(line), query.Revoked},
		{"longer, and an empty one before", line, 0, query.Genuine}, // until the dispatcher sends it again
		{"too long", line + strings.Repeat("#\n", gatewaytoken.MaxRegister/2), len(line) + gatewaytoken.MaxRegister/2*2, query.NoVerdict},
	} {
		k := keeperOf(t, "")
		k.register.Store(readRegister(&work.TokenRegister{Cluster: gatewaytokentest.Cluster, Size: uint32(tt.size)}, file(t, tt.text)))
		if a := exchanged(k, questionOf(issue(t)), gatewayNow); a.Verdict != tt.want {
			t.Errorf("%s: verdict %d", tt.name, a.Verdict)
		}
	}
}

// TestBearer checks that daemons accept the bearer for the right user, and for no
// longer than the gateway token is valid.
func TestBearer(t *testing.T) {
	key, err := auth.NewKey(gatewaytokentest.Secret)
	if err != nil {
		t.Fatal(err)
	}
	k, uid := keeperOf(t, ""), uint32(1000)
	for _, tt := range []struct {
		user string
		life int // seconds
		want int // seconds from the second of now until the bearer expires
	}{
		{"alice", 3600, 30}, {"alice", 31, 30}, {"alice", 30, 30}, {"alice", 29, 29}, {"alice", 1, 1},
		{"root", 3600, 30}, {strings.Repeat("u", 64), 3600, 30}, {"a.b_c-d", 3600, 30},
	} {
		a := exchanged(k, questionOf(issue(t, func(token *gatewaytoken.Token) {
			token.User, token.UID, token.Label = tt.user, &uid, "ci"
			token.Expires = token.Issued.Add(time.Duration(tt.life) * time.Second)
		})), gatewayNow)
		c, err := auth.Verifier{Key: key, Now: func() time.Time { return gatewayNow }}.Verify(string(a.Bearer))
		if err != nil || c.User != tt.user || c.UID != nil || c.Gateway || c.Withheld != 0 || c.IssuedAt.After(gatewayNow) ||
			c.Expires.Unix() != gatewayNow.Unix()+int64(tt.want) {
			t.Errorf("the bearer for a token of %s for %d s: %+v, %v", tt.user, tt.life, c, err)
		}
		if gatewaytoken.Is(string(a.Bearer)) || bytes.Contains(a.Bearer, []byte(gatewaytokentest.ID)) {
			t.Errorf("the bearer for a token of %s is %s", tt.user, a.Bearer)
		}
	}
}

// TestDigests checks that keepers have the same digests if they have the same key
// and register, and that one digest shows what differs.
func TestDigests(t *testing.T) {
	ask := func(k *keeper) query.Digests { return *k.digests(&query.AskDigests{ID: 9}) }
	line := gatewaytoken.RevokeToken(gatewaytokentest.ID)
	first, same := ask(keeperOf(t, line)), ask(keeperOf(t, line))
	if first != same || first.ID != 9 || len(first.Key) != 16 || len(first.Register) != 16 {
		t.Errorf("the same files have %+v and %+v", first, same)
	}
	if d := ask(keeperOf(t, "")); d.Key != first.Key || d.Register == first.Register {
		t.Errorf("another register has %+v, the first %+v", d, first)
	}
	k := keeperOf(t, line)
	sendToken(t, k, otherKey, true)
	if d := ask(k); d.Key == first.Key || d.Register != first.Register {
		t.Errorf("another key has %+v, the first %+v", d, first)
	}
	if d := ask(newKeeper(nil)); d.Key != "none" || d.Register != "none" {
		t.Errorf("nothing has %+v", d)
	}
	if d := ask(keeperOf(t, "revoke it\n")); d.Key != first.Key || d.Register != "none" {
		t.Errorf("a wrong register has %+v", d)
	}
}
