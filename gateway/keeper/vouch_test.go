package keeper

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/auth/gatewaytoken/gatewaytokentest"
	"schedrestd/gateway/service"
	"schedrestd/internal/limit"
	"schedrestd/internal/setting"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// slurmToken returns a token of Slurm, which the cluster's key has signed, with this
// payload.
func slurmToken(payload string) string {
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(payload))
	mac := hmac.New(sha256.New, gatewaytokentest.Secret)
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

func vouchQuestion(token, actAs string, gateway bool) *query.VouchFor {
	e := questionFor(token, actAs)
	return &query.VouchFor{ID: 5, Signed: e.Signed, MAC: e.MAC, ActAs: actAs, Gateway: gateway}
}

// fakeParent accepts the numbers of all users, except those of the system.
type fakeParent struct {
	mu      sync.Mutex
	vouched []ipc.Vouch
}

func (p *fakeParent) list() []ipc.Vouch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.vouched)
}

// connectParent gives a keeper a channel to a parent.
func connectParent(t *testing.T, k *keeper) *fakeParent {
	t.Helper()
	end, fd, err := ipc.Pair(ipc.Acceptor, ipc.Keeper)
	must(t, err)
	t.Cleanup(func() { end.Close() })
	must(t, k.vouches.connect(fd, k.connectUser))
	p := new(fakeParent)
	go func() {
		for {
			m, err := end.Receive()
			if err != nil {
				return
			}
			v := m.Message.(*ipc.Vouch)
			p.mu.Lock()
			p.vouched = append(p.vouched, *v)
			p.mu.Unlock()
			answer := &ipc.Vouched{Client: v.Client}
			if v.UID == 999 {
				answer.Client = 0
			}
			_ = end.Send(answer)
		}
	}()
	return p
}

// connectUsers connects a keeper with a resolver that knows these users. All of them
// are members of the group students, except bob.
func connectUsers(t *testing.T, k *keeper) {
	users := map[string]uint32{"alice": 1000, "bob": 1001, "portal": 1002, "games": 999, "root": 0}
	end := connectResolver(t, k)
	go func() {
		for {
			m, err := end.Receive()
			if err != nil {
				return
			}
			q := m.Message.(*query.AskMember)
			a := &query.Membership{ID: q.ID, Available: q.User != "slow", UID: ipc.NoID}
			if uid, ok := users[q.User]; ok {
				a.UID, a.GID, a.Groups, a.Member = uid, 100, []uint32{100, 4000}, q.Group == "students" && q.User != "bob"
			}
			if !q.Groups {
				a.Groups = nil
			}
			_ = end.Send(a)
		}
	}()
}

// TestVouching checks for whose tokens the keeper vouches.
func TestVouching(t *testing.T) {
	exp := func(d time.Duration) int64 { return gatewayNow.Add(d).Unix() }
	claims := func(format string, args ...any) string { return slurmToken(fmt.Sprintf(format, args...)) }
	good := claims(`{"exp":%d,"iat":1,"sun":"alice"}`, exp(time.Hour))
	withUID := func(uid uint32) func(*gatewaytoken.Token) { return func(t *gatewaytoken.Token) { t.UID = &uid } }
	for _, tt := range []struct {
		name, register, token, actAs string
		gateway                      bool
		want                         query.Verdict
		uid                          uint32 // of the process; 0: none starts
	}{
		{"Slurm's token", "", good, "", false, query.Genuine, 1000},
		{"the token's own name", "", good, "alice", false, query.Genuine, 1000},
		{"another name", "", good, "bob", false, query.NotForUser, 0},
		{"root's token as another user", "", claims(`{"exp":%d,"sun":"root"}`, exp(time.Hour)), "alice", false, query.NotForUser, 0},
		{"a forged signature", "", good[:len(good)-4] + "AAAA", "", false, query.Forged, 0},
		{"expired", "", claims(`{"exp":%d,"sun":"alice"}`, exp(-time.Second)), "", false, query.Forged, 0},
		{"not valid yet", "", claims(`{"exp":%d,"nbf":%d,"sun":"alice"}`, exp(time.Hour), exp(time.Minute)), "", false, query.Forged, 0},
		{"valid since a moment", "", claims(`{"exp":%d,"nbf":%d,"sun":"alice"}`, exp(time.Hour), exp(0)), "", false, query.Genuine, 1000},
		{"a beginning that is a text", "", claims(`{"exp":%d,"nbf":"1","sun":"alice"}`, exp(time.Hour)), "", false, query.Forged, 0},
		{"no end", "", claims(`{"sun":"alice"}`), "", false, query.Forged, 0},
		{"an end that is a text", "", claims(`{"exp":"%d","sun":"alice"}`, exp(time.Hour)), "", false, query.Forged, 0},
		{"a fraction of a second", "", claims(`{"exp":%d.5,"sun":"alice"}`, exp(time.Hour)), "", false, query.Genuine, 1000},
		{"no user", "", claims(`{"exp":%d}`, exp(time.Hour)), "", false, query.NotForUser, 0},
		{"only the claim username", "", claims(`{"exp":%d,"username":"alice"}`, exp(time.Hour)), "", false, query.NotForUser, 0},
		{"a claim in capitals", "", claims(`{"exp":%d,"SUN":"alice"}`, exp(time.Hour)), "", false, query.NotForUser, 0},
		{"a second claim in capitals", "", claims(`{"exp":%d,"sun":"alice","Sun":"bob"}`, exp(time.Hour)), "", false, query.Genuine, 1000},
		{"a uid for a name", "", claims(`{"exp":%d,"sun":"1001"}`, exp(time.Hour)), "", false, query.NotForUser, 0},
		{"a number for a name", "", claims(`{"exp":%d,"sun":1001}`, exp(time.Hour)), "", false, query.NotForUser, 0},
		{"an empty name", "", claims(`{"exp":%d,"sun":""}`, exp(time.Hour)), "", false, query.NotForUser, 0},
		{"a path for a name", "", claims(`{"exp":%d,"sun":"../alice"}`, exp(time.Hour)), "", false, query.NotForUser, 0},
		{"an identity of another user", "", claims(`{"exp":%d,"sun":"alice","uid":1001,"gid":100,"id":{"name":"bob"}}`, exp(time.Hour)), "", false, query.NotForUser, 0},
		{"an unknown user", "", claims(`{"exp":%d,"sun":"zoe"}`, exp(time.Hour)), "", false, query.NotForUser, 0},
		{"a user whom the parent refuses", "", claims(`{"exp":%d,"sun":"games"}`, exp(time.Hour)), "", false, query.Genuine, 0},
		{"no payload", "", slurmToken(""), "", false, query.Forged, 0},
		{"a payload that is a list", "", slurmToken(`["alice"]`), "", false, query.Forged, 0},
		{"two payloads", "", claims(`{"exp":%[1]d,"sun":"alice"}{"exp":%[1]d,"sun":"bob"}`, exp(time.Hour)), "", false, query.Forged, 0},
		{"the user database is unavailable", "", claims(`{"exp":%d,"sun":"slow"}`, exp(time.Hour)), "", false, query.NoVerdict, 0},

		{"a gateway token", "", issue(t), "", true, query.Genuine, 1000},
		{"a gateway token as one of Slurm's", "", issue(t), "", false, query.Forged, 0},
		{"Slurm's token as a gateway token", "", good, "", true, query.Forged, 0},
		{"its uid", "", issue(t, withUID(1000)), "", true, query.Genuine, 1000},
		{"its uid was another one", "", issue(t, withUID(1001)), "", true, query.NotForUser, 0},
		{"no scope for reading", "", issue(t, func(t *gatewaytoken.Token) { t.Scopes = scope.ComputeCreate | scope.SlurmdbRead }), "", true, query.NotForUser, 0},
		{"as another user", "", issue(t), "bob", true, query.NotForUser, 0},
		{"revoked", gatewaytoken.RevokeToken(gatewaytokentest.ID), issue(t), "", true, query.Revoked, 0},
		{"a portal for a member", "", portalToken(t), "alice", true, query.Genuine, 1000},
		{"a portal for a user who is not a member", "", portalToken(t), "bob", true, query.NotForUser, 0},
		{"a portal for itself, without a name", "", portalToken(t), "", true, query.NotForUser, 0},
		{"a portal for root", "", portalToken(t), "root", true, query.NotForUser, 0},
		{"a portal for a user of the system", "", portalToken(t), "games", true, query.NotForUser, 0},
		{"a portal's member whose tokens are revoked", gatewaytoken.RevokeBefore("alice", gatewayNow), portalToken(t), "alice", true, query.Revoked, 0},
	} {
		k := portalKeeper(t, tt.register)
		connectUsers(t, k)
		p := connectParent(t, k)
		a := k.vouchFor(&client{Client: new(service.Client)}, vouchQuestion(tt.token, tt.actAs, tt.gateway), gatewayNow)
		if a.ID != 5 || a.Verdict != tt.want || (a.Client != 0) != (tt.uid != 0) || tt.uid != 0 && a.UID != tt.uid {
			t.Errorf("%s: %+v", tt.name, a)
		}
		if told := p.list(); tt.uid != 0 && (len(told) != 1 || told[0].Client != a.Client || told[0].UID != tt.uid || told[0].GID != 100 || !slices.Equal(told[0].Groups, []uint32{100, 4000})) || tt.want != query.Genuine && told != nil {
			t.Errorf("%s: vouched for %+v", tt.name, told)
		}
	}
}

// TestVouchingForProviders checks for whose tokens of an identity provider the keeper
// vouches.
func TestVouchingForProviders(t *testing.T) {
	provider, stranger := newRSA(t), newRSA(t)
	encode := base64.RawURLEncoding.EncodeToString
	set := fmt.Sprintf(`{"keys":[{"kty":"EC"},{"kty":"RSA","kid":"a","n":"%s","e":"AQAB"}]}`, encode(provider.N.Bytes()))
	claims := work.ProviderRules{UserClaim: "preferred_username"}.Text()
	rules := work.ProviderRules{Tokens: setting.Tokens{Issuer: "https://idp", Audience: "sched", ScopeClaim: "scp", OneUser: true}, UserClaim: "email"}.Text()
	const granted = `"iss":"https://idp","aud":["x","sched"],"scp":"openid compute.read"`
	exp := gatewayNow.Add(time.Hour).Unix()
	for _, tt := range []struct {
		name, set, rules string
		key              *rsa.PrivateKey
		payload, actAs   string
		want             query.Verdict
		uid              uint32
	}{
		{"the configured claim", set, claims, provider, `"preferred_username":"alice"`, "", query.Genuine, 1000},
		{"the first claim", set, claims, provider, `"preferred_username":"alice","username":"alice","sun":"bob"`, "", query.Genuine, 1001},
		{"a first claim that is no name", set, claims, provider, `"preferred_username":"alice","sun":null`, "", query.NotForUser, 0},
		{"another claim", set, claims, provider, `"name":"alice"`, "", query.NotForUser, 0},
		{"the configured claim, which is not configured", set, work.ProviderRules{}.Text(), provider, `"preferred_username":"alice"`, "", query.NotForUser, 0},
		{"a claim twice", set, claims, provider, `"sun":"alice","sun":"bob"`, "", query.Forged, 0},
		{"expired", set, claims, provider, `"sun":"alice","exp":1`, "", query.Forged, 0},
		{"as another user", set, claims, provider, `"sun":"alice"`, "bob", query.NotForUser, 0},
		{"another key", set, claims, stranger, `"sun":"alice"`, "", query.Outdated, 0},
		{"no key set", "", claims, provider, `"sun":"alice"`, "", query.Outdated, 0},
		{"a key set that is none", "{}", claims, provider, `"sun":"alice"`, "", query.Outdated, 0},
		{"the administrator's rules", set, rules, provider, granted + `,"sun":"alice","email":"alice"`, "", query.Genuine, 1000},
		{"another issuer", set, rules, provider, `"aud":"sched","scp":"compute.read","sun":"alice","iss":"https://other"`, "", query.Forged, 0},
		{"no issuer", set, rules, provider, `"aud":"sched","scp":"compute.read","sun":"alice"`, "", query.Forged, 0},
		{"another audience", set, rules, provider, `"iss":"https://idp","aud":["x"],"scp":"compute.read","sun":"alice"`, "", query.Forged, 0},
		{"an audience that is a number", set, rules, provider, `"iss":"https://idp","aud":1,"scp":"compute.read","sun":"alice"`, "", query.Forged, 0},
		{"no scope for reading", set, rules, provider, `"iss":"https://idp","aud":"sched","scp":["compute.create"],"sun":"alice"`, "", query.NotForUser, 0},
		{"no scope", set, rules, provider, `"iss":"https://idp","aud":"sched","sun":"alice"`, "", query.NotForUser, 0},
		{"two users", set, rules, provider, granted + `,"sun":"alice","email":"bob"`, "", query.Forged, 0},
		{"the same user in the identity", set, claims, provider, `"sun":"alice","uid":1000,"gid":100,"id":{"name":"alice"}`, "", query.Genuine, 1000},
		{"another user in the identity", set, claims, provider, `"sun":"alice","uid":1001,"gid":100,"id":{"name":"bob"}`, "", query.NotForUser, 0},
		{"another user in the identity than in the configured claim", set, claims, provider, `"preferred_username":"alice","uid":1001,"gid":100,"id":{"name":"bob"}`, "", query.NotForUser, 0},
		{"two users in the identity", set, claims, provider, `"sun":"alice","uid":1000,"gid":100,"id":{"name":"alice","name":"bob"}`, "", query.NotForUser, 0},
		{"a number in the identity", set, claims, provider, `"sun":"alice","uid":1000,"gid":100,"id":{"name":5}`, "", query.NotForUser, 0},
		{"an identity without a name", set, claims, provider, `"sun":"alice","uid":1000,"gid":100,"id":{}`, "", query.Genuine, 1000},
		{"an identity that the daemons ignore", set, claims, provider, `"sun":"alice","uid":1001,"id":{"name":"bob"}`, "", query.Genuine, 1000},
		{"an id that is no identity", set, claims, provider, `"sun":"alice","uid":1000,"gid":100,"id":"5"`, "", query.Genuine, 1000},
		{"no rules: no output is read", set, "", provider, `"sun":"alice"`, "", query.Outdated, 0},
	} {
		k := newKeeper(nil)
		connectUsers(t, k)
		p := connectParent(t, k)
		if a := sendKeys(t, k, ipc.SecretKeys{Provider: tt.rules}, "", "", "", "", tt.set); !a.OK || a.Token {
			t.Fatalf("%s: %+v", tt.name, a)
		}
		if !strings.Contains(tt.payload, "exp") {
			tt.payload += fmt.Sprintf(`,"exp":%d`, exp)
		}
		signed := encode([]byte(`{"alg":"RS256","kid":"a"}`)) + "." + encode([]byte("{"+tt.payload+"}"))
		digest := sha256.Sum256([]byte(signed))
		signature, err := rsa.SignPKCS1v15(nil, tt.key, crypto.SHA256, digest[:])
		must(t, err)
		a := k.vouchFor(&client{Client: new(service.Client)}, &query.VouchFor{Signed: []byte(signed), RSA: signature, ActAs: tt.actAs}, gatewayNow)
		if a.Verdict != tt.want || (a.Client != 0) != (tt.uid != 0) || tt.uid != 0 && a.UID != tt.uid || len(p.list()) != map[bool]int{true: 1}[tt.uid != 0] {
			t.Errorf("%s: %+v, vouched for %+v", tt.name, a, p.list())
		}
	}
}

func newRSA(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	return key
}

// TestVouchAgain checks how often the keeper vouches for a user, and what happens if the
// parent is not reached.
func TestVouchAgain(t *testing.T) {
	k := portalKeeper(t, "")
	connectUsers(t, k)
	question := vouchQuestion(issue(t), "", true)
	if a := k.vouchFor(&client{Client: new(service.Client)}, question, gatewayNow); a.Verdict != query.Genuine || a.Client != 0 {
		t.Errorf("without a channel to the parent: %+v", a)
	}
	p := connectParent(t, k)
	var last uint64
	for i, after := range []time.Duration{0, vouchInterval - time.Second, vouchInterval, vouchInterval + time.Second} {
		if a := k.vouchFor(&client{Client: new(service.Client)}, question, gatewayNow.Add(after)); a.Client == 0 || (a.Client == last) != (i%2 == 1) {
			t.Errorf("after %v: %+v, before %d", after, a, last)
		} else {
			last = a.Client
		}
		if n, want := len(p.list()), 1+i/2; n != want {
			t.Errorf("after %v: vouched %d times, want %d", after, n, want)
		}
	}
	k.vouches.channel.Close()
	if a := k.vouchFor(&client{Client: new(service.Client)}, question, gatewayNow.Add(time.Minute)); a.Client != 0 {
		t.Errorf("the parent is gone: %+v", a)
	}
	k.token.Store(nil)
	if a := k.vouchFor(&client{Client: new(service.Client)}, &query.VouchFor{Signed: []byte("a.b")}, gatewayNow); a.Verdict != query.Outdated {
		t.Errorf("without the key: %+v", a)
	}
}

// TestKnownUsersDontWait checks that the keeper answers about a user for whom it has
// vouched while the parent does not answer about another one.
func TestKnownUsersDontWait(t *testing.T) {
	k := portalKeeper(t, "")
	connectUsers(t, k)
	p := connectParent(t, k)
	vouch := func(uid uint32) uint64 { return k.vouches.vouch(&query.Membership{UID: uid}, false, gatewayNow) }
	known := vouch(1000)
	p.mu.Lock() // so it does not answer
	other, again := make(chan uint64), make(chan uint64, 1)
	go func() { other <- vouch(1001) }()
	for k.vouches.mu.TryLock() { // until the keeper waits for the parent
		k.vouches.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	go func() { again <- vouch(1000) }()
	select {
	case got := <-again:
		if got != known || known == 0 {
			t.Errorf("another number: %d, before %d", got, known)
		}
	case <-time.After(vouchTime / 2):
		t.Error("waits for the answer about another user")
	}
	p.mu.Unlock()
	if <-other == 0 {
		t.Error("no number for the other user")
	}
}

// TestVouchesDontWait checks that a worker gets answers to other questions while the
// resolver does not answer, and that too many questions get no number.
func TestVouchesDontWait(t *testing.T) {
	k := portalKeeper(t, "")
	connectResolver(t, k)
	w := connectWorker(t, k)
	token := slurmToken(fmt.Sprintf(`{"exp":%d,"sun":"alice"}`, time.Now().Add(time.Hour).Unix()))
	for i := range uint64(limit.KeeperPending.Share + 1) {
		q := vouchQuestion(token, "", false)
		q.ID = i
		must(t, w.Send(q))
	}
	m, err := w.Receive()
	must(t, err)
	if a, ok := m.Message.(*query.VouchedFor); !ok || a.ID != uint64(limit.KeeperPending.Share) || a.Client != 0 {
		t.Errorf("the last of too many: %+v", m.Message)
	}
	must(t, w.Send(&query.AskDigests{ID: 99}))
	m, err = w.Receive()
	must(t, err)
	if d, ok := m.Message.(*query.Digests); !ok || d.ID != 99 {
		t.Errorf("another question: %+v", m.Message)
	}
}
