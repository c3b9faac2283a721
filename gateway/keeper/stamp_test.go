package keeper

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/auth/gatewaytoken/gatewaytokentest"
	"schedrestd/gateway/service"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/rpc/payload"
)

// stampKeeper returns a keeper that decides about each message, and knows some users.
func stampKeeper(t *testing.T, register string) (*keeper, *fakeParent) {
	t.Helper()
	k := portalKeeper(t, register)
	k.stamps.Store(true)
	connectUsers(t, k)
	return k, connectParent(t, k)
}

// startProcess starts a process of the user with this uid, whose credentials consist of
// the uid and the payload. It returns the process's end of its channel to the keeper.
func startProcess(t *testing.T, k *keeper, uid uint32) *ipc.Channel {
	t.Helper()
	end, fd, err := ipc.Pair(ipc.Credential, ipc.Keeper)
	must(t, err)
	t.Cleanup(func() { end.Close() })
	k.connectUser(uid, fd)
	go func() {
		for {
			m, err := end.Receive()
			if err != nil {
				return
			}
			q := m.Message.(*query.GetCredential)
			_ = end.Send(&query.GotCredential{ID: q.ID, Credential: fmt.Appendf(nil, "%d %t %x", uid, q.Accounting, q.Payload)})
		}
	}()
	return end
}

// stamp asks a keeper for the credential of a message.
func stamp(k *keeper, token, actAs string, number uint16, text string) *query.Stamped {
	e := questionFor(token, actAs)
	b := new(body)
	if err := b.add(number, []byte(text)); err != nil {
		panic(err)
	}
	return k.stamp(&client{Client: new(service.Client), keeper: k}, &query.Stamp{ID: 5, Signed: e.Signed, MAC: e.MAC, ActAs: actAs, Type: number}, b, gatewayNow)
}

// TestStamp checks for whose messages the keeper gets credentials.
func TestStamp(t *testing.T) {
	const reading, body = 2003, "\x00\x01the body"
	withScopes := func(s scope.Set) func(*gatewaytoken.Token) { return func(t *gatewaytoken.Token) { t.Scopes = s } }
	withUID := func(uid uint32) func(*gatewaytoken.Token) { return func(t *gatewaytoken.Token) { t.UID = &uid } }
	good := issue(t)
	for _, tt := range []struct {
		name, register, token, actAs string
		number                       uint16
		want                         query.Verdict
		uid                          uint32 // in the credential; 0: there is none
	}{
		{"a token that reads", "", good, "", reading, query.Genuine, 1000},
		{"its own name", "", good, "alice", reading, query.Genuine, 1000},
		{"its uid", "", issue(t, withUID(1000)), "", reading, query.Genuine, 1000},
		{"its uid was another one", "", issue(t, withUID(1001)), "", reading, query.NotForUser, 0},
		{"another name", "", good, "bob", reading, query.NotForUser, 0},
		{"a submission", "", good, "", 4003, query.NotInScope, 0},
		{"a submission with its scope", "", issue(t, withScopes(scope.ComputeCreate)), "", 4003, query.Genuine, 1000},
		{"a token of Slurm that can do everything", "", issue(t, withScopes(scope.All)), "", 5039, query.NotInScope, 0},
		{"a message that is not in the table", "", issue(t, withScopes(scope.All)), "", 5001, query.NotInScope, 0},
		{"slurmdbd", "", good, "", 6500, query.NotInScope, 0},
		{"slurmdbd with its scope", "", issue(t, withScopes(scope.SlurmdbRead)), "", 6500, query.Genuine, 1000},
		{"Slurm's token", "", slurmToken(fmt.Sprintf(`{"exp":%d,"sun":"alice"}`, gatewayNow.Unix()+60)), "", reading, query.Forged, 0},
		{"a forged signature", "", good[:len(good)-4] + "AAAA", "", reading, query.Forged, 0},
		{"expired", "", issue(t, func(t *gatewaytoken.Token) { t.Expires = gatewayNow }), "", reading, query.Forged, 0},
		{"revoked", gatewaytoken.RevokeToken(gatewaytokentest.ID), good, "", reading, query.Revoked, 0},
		{"a user whom the parent refuses", "", issue(t, func(t *gatewaytoken.Token) { t.User = "games" }), "", reading, query.NotForUser, 0},
		{"an unknown user", "", issue(t, func(t *gatewaytoken.Token) { t.User = "zoe" }), "", reading, query.NotForUser, 0},
		{"the user database is unavailable", "", issue(t, func(t *gatewaytoken.Token) { t.User = "slow" }), "", reading, query.NoVerdict, 0},
		{"a portal for a member", "", portalToken(t), "alice", reading, query.Genuine, 1000},
		{"a portal for a user who is not a member", "", portalToken(t), "bob", reading, query.NotForUser, 0},
		{"a portal without a name", "", portalToken(t), "", reading, query.NotForUser, 0},
		{"a portal for root", "", portalToken(t), "root", reading, query.NotForUser, 0},
		{"a portal's member whose tokens are revoked", gatewaytoken.RevokeBefore("alice", gatewayNow), portalToken(t), "alice", reading, query.Revoked, 0},
	} {
		k, _ := stampKeeper(t, tt.register)
		a := stamp(k, tt.token, tt.actAs, tt.number, body)
		if (a.Client != 0) != (tt.uid != 0) || len(a.Credential) > 0 {
			t.Errorf("%s: without a process: %+v", tt.name, a)
		}
		if tt.uid != 0 {
			startProcess(t, k, tt.uid)
			a = stamp(k, tt.token, tt.actAs, tt.number, body)
		}
		want := ""
		if tt.uid != 0 {
			want = fmt.Sprintf("%d %t %s", tt.uid, tt.number == 6500, hex.EncodeToString(payload.Of(tt.number, []byte(body))))
		}
		if a.ID != 5 || a.Verdict != tt.want || string(a.Credential) != want {
			t.Errorf("%s: %+v, want the credential %q", tt.name, a, want)
		}
		if exchanged, _ := k.exchange(questionFor(tt.token, tt.actAs), 0, gatewayNow, &query.Membership{Available: true, Member: true, UID: 1000}); exchanged.Bearer != nil {
			t.Errorf("%s: the token is exchanged", tt.name)
		}
	}
}

// TestStampOff checks that a keeper stamps no message if gateway tokens are exchanged.
func TestStampOff(t *testing.T) {
	k, _ := stampKeeper(t, "")
	k.stamps.Store(false)
	startProcess(t, k, 1000)
	if a := stamp(k, issue(t), "", 2003, ""); a.Verdict != query.NoVerdict || a.Credential != nil || a.Client != 0 {
		t.Errorf("%+v", a)
	}
}

// TestStatsNeedScope checks that a message which resets the statistics has the type of
// one that reads them, but needs another scope.
func TestStatsNeedScope(t *testing.T) {
	for text, want := range map[string]scope.Set{"\x00\x01": scope.ComputeRead, "\x00\x00": scope.ClusterAdmin, "\x00": scope.ClusterAdmin, "": scope.ClusterAdmin} {
		for s := scope.Set(1); s < scope.All; s <<= 1 {
			if got := s.PermitRPC(2035, []byte(text)); got != (s == want) {
				t.Errorf("%q with %s: %t", text, s, got)
			}
		}
	}
}

// TestProcessesOfUsers checks when a worker has to have the process of a user
// started: once, and again when it has exited.
func TestProcessesOfUsers(t *testing.T) {
	k, p := stampKeeper(t, "")
	token := issue(t)
	first := stamp(k, token, "", 2003, "")
	if v := p.list(); len(v) != 1 || v[0].UID != 1000 || first.Client != v[0].Client || first.UID != 1000 {
		t.Fatalf("%+v, vouched for %+v", first, v)
	}
	second := make(chan *query.Stamped)
	go func() { second <- stamp(k, token, "", 2003, "") }() // waits for the process
	old := startProcess(t, k, 1000)
	if a := <-second; len(a.Credential) == 0 || a.Client != 0 {
		t.Errorf("while the process starts: %+v", a)
	}
	old.Close()
	for a := stamp(k, token, "", 2003, ""); a.Client != first.Client; a = stamp(k, token, "", 2003, "") {
		if a.Client != 0 || len(a.Credential) > 0 { // until the keeper has noticed, it has no answer
			t.Fatalf("the process has exited: %+v", a)
		}
	}
	startProcess(t, k, 1000)
	newer := startProcess(t, k, 1000)
	if a := stamp(k, token, "", 2003, ""); len(a.Credential) == 0 {
		t.Errorf("a second process: %+v", a)
	}
	must(t, newer.Send(&query.GotCredential{ID: 77})) // nobody asked
	if a := stamp(k, token, "", 2003, ""); len(a.Credential) == 0 {
		t.Errorf("after an answer that nobody asked for: %+v", a)
	}
}

// TestRefusedProcess checks that messages end at once when the dispatcher refuses the
// process of their user, and that the next message after a while has it started again.
func TestRefusedProcess(t *testing.T) {
	k, p := stampKeeper(t, "")
	token := issue(t)
	first := stamp(k, token, "", 2003, "") // the worker has to have the process started
	refuse := func(client uint64) {
		t.Helper()
		if handled, err := k.Handle(ipc.Received{Message: &work.NoCredential{Client: client, Reason: "too many"}}); !handled || err != nil {
			t.Errorf("%t, %v", handled, err)
		}
	}
	waiting := make(chan *query.Stamped)
	go func() { waiting <- stamp(k, token, "", 2003, "") }()
	for k.users.pending.Held(1000) == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, other := range []uint64{0, first.Client + 2, first.Client ^ 1} { // of no user, and of output
		refuse(other)
	}
	refuse(first.Client)
	refuse(first.Client) // a second time
	for _, a := range []*query.Stamped{<-waiting, stamp(k, token, "", 2003, "")} {
		if a.Verdict != query.Genuine || a.Client != 0 || a.Credential != nil || !strings.Contains(a.Reason, "too many") {
			t.Errorf("refused: %+v", a)
		}
	}
	k.users.processes[1000].ended = gatewayNow.Add(-refusedTime)
	if a := stamp(k, token, "", 2003, ""); a.Client != first.Client {
		t.Errorf("later: %+v", a)
	}
	refuse(first.Client)
	startProcess(t, k, 1000) // another worker has had it started
	if a := stamp(k, token, "", 2003, ""); len(a.Credential) == 0 {
		t.Errorf("after a start: %+v", a)
	}
	refuse(first.Client)
	if a := stamp(k, token, "", 2003, ""); len(a.Credential) == 0 {
		t.Errorf("a refusal of a process that runs: %+v", a)
	}
	if n := len(p.list()); n != 1 {
		t.Errorf("vouched %d times", n)
	}
}

// TestCredentialChannels checks that the keeper takes only the channels of processes of
// users for whom it has vouched.
func TestCredentialChannels(t *testing.T) {
	k, _ := stampKeeper(t, "")
	parent, fd, err := ipc.Pair(ipc.Acceptor, ipc.Keeper)
	must(t, err)
	defer parent.Close()
	must(t, k.vouches.connect(fd, k.connectUser))
	k.vouches.knownMu.Lock()
	k.vouches.known[vouchedFor{1000, true}] = vouched{client: 8, previous: 7, asked: gatewayNow}
	k.vouches.known[vouchedFor{1000, false}] = vouched{client: 6, asked: gatewayNow}
	k.vouches.knownMu.Unlock()
	for client, taken := range map[uint64]bool{6: false, 7: true, 8: true, 0: false} {
		end, fd, err := ipc.Pair(ipc.Credential, ipc.Keeper)
		must(t, err)
		must(t, parent.Send(&ipc.KeeperChannel{Client: client}, fd))
		unix.Close(fd)
		if !taken {
			if _, err := end.Receive(); err == nil {
				t.Errorf("the channel for %d is not closed", client)
			}
			end.Close()
			continue
		}
		go func() {
			if m, err := end.Receive(); err == nil {
				_ = end.Send(&query.GotCredential{ID: m.Message.(*query.GetCredential).ID, Credential: []byte("it")})
			}
		}()
		for a := stamp(k, issue(t), "", 2003, ""); string(a.Credential) != "it"; a = stamp(k, issue(t), "", 2003, "") {
			if a.Verdict != query.Genuine {
				t.Fatalf("%d: %+v", client, a)
			}
		}
		end.Close()
	}
}

// TestParts checks the credentials of bodies that come in parts, and that parts of two
// messages are refused.
func TestParts(t *testing.T) {
	k, _ := stampKeeper(t, "")
	startProcess(t, k, 1000)
	w := connectWorker(t, k)
	now := time.Now()
	token := issue(t, func(t *gatewaytoken.Token) {
		t.Issued, t.Expires, t.Scopes = now.Truncate(time.Second), now.Add(time.Hour).Truncate(time.Second), scope.ComputeCreate
	})
	text := bytes.Repeat([]byte("script "), 10_000)
	e := questionFor(token, "")
	for range 2 {
		rest := text
		for ; len(rest) > 20_000; rest = rest[20_000:] {
			must(t, w.Send(&query.StampPart{Type: 4003, Body: rest[:20_000]}))
		}
		must(t, w.Send(&query.Stamp{ID: 1, Signed: e.Signed, MAC: e.MAC, Type: 4003, Body: rest}))
		m, err := w.Receive()
		must(t, err)
		want := fmt.Sprintf("1000 false %x", payload.Of(4003, text))
		if a := m.Message.(*query.Stamped); string(a.Credential) != want {
			t.Errorf("%+v, want %q", a, want)
		}
	}
	if b := new(body); b.add(1, nil) != nil || !errors.Is(b.add(2, nil), errMixed) {
		t.Error("parts of two messages are accepted")
	}
}

// TestManyUsers checks that only so many users have a process: the one that has not been
// needed for the longest time ends.
func TestManyUsers(t *testing.T) {
	u := newUsers()
	ends := map[uint32]*ipc.Channel{}
	start := func(uid uint32, after time.Duration) {
		t.Helper()
		end, fd, err := ipc.Pair(ipc.Credential, ipc.Keeper)
		must(t, err)
		t.Cleanup(func() { end.Close() })
		if _, missing := u.of(uid, 1, gatewayNow.Add(after)); !missing {
			t.Fatalf("user %d has a process", uid)
		}
		must(t, u.connect(uid, fd))
		ends[uid] = end
	}
	for i := range uint32(maxProcesses) {
		start(1000+i, time.Duration(i)*time.Second)
	}
	if _, missing := u.of(1000, 1, gatewayNow.Add(time.Hour)); missing {
		t.Error("the first user has no process")
	}
	start(9000, time.Hour)
	if _, err := ends[1001].Receive(); err == nil {
		t.Error("the process that was needed least recently has got a message")
	}
	if n := len(u.processes); n != maxProcesses || u.processes[1001] != nil || u.processes[1000] == nil || u.processes[9000] == nil {
		t.Errorf("%d users have processes", n)
	}
}

// TestEachWorkerIsAsked checks that a worker that has no process started does not keep
// others from having it started.
func TestEachWorkerIsAsked(t *testing.T) {
	u := newUsers()
	for i, tt := range []struct {
		worker uint32
		after  time.Duration
		want   bool
	}{{1, 0, true}, {1, time.Second, false}, {2, time.Second, true}, {2, 2 * time.Second, false}, {1, stampTime - 1, false}, {1, stampTime, true}} {
		if _, missing := u.of(1000, tt.worker, gatewayNow.Add(tt.after)); missing != tt.want {
			t.Errorf("%d: %t", i, missing)
		}
	}
}

// TestStoppedProcess checks that the messages of a user whose process does not answer take
// only so many places.
func TestStoppedProcess(t *testing.T) {
	k, _ := stampKeeper(t, "")
	token := issue(t)
	stamp(k, token, "", 2003, "") // the worker has to have the process started
	waiting := make(chan *query.Stamped, limit.KeeperStamps.Share)
	for range limit.KeeperStamps.Share {
		go func() { waiting <- stamp(k, token, "", 2003, "") }()
	}
	eventually := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	eventually("not all messages wait", func() bool { return k.users.pending.Held(1000) >= limit.KeeperStamps.Share })
	if a := stamp(k, token, "", 2003, ""); a.Verdict != query.Genuine || a.Reason == "" || a.Client != 0 || a.Credential != nil {
		t.Errorf("one more: %+v", a)
	}
	startProcess(t, k, 1000)
	for range limit.KeeperStamps.Share {
		if a := <-waiting; len(a.Credential) == 0 {
			t.Errorf("%+v", a)
		}
	}
}
