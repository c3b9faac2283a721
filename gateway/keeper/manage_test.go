package keeper

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/auth/gatewaytoken/gatewaytokentest"
	"schedrestd/gateway/service"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// A managing is a keeper with a register that it can append to. As the dispatcher
// does, a goroutine gives it the register again when that has changed.
type managing struct {
	*keeper
	t      *testing.T
	client *client
	path   string
}

func newManaging(t *testing.T, register string, lifetime uint32) *managing {
	t.Helper()
	m := &managing{keeper: keeperOf(t, ""), t: t, path: filepath.Join(t.TempDir(), "tokens")}
	must(t, os.WriteFile(m.path, []byte(register), 0o644))
	f, err := os.OpenFile(m.path, os.O_RDWR|os.O_APPEND, 0)
	must(t, err)
	m.appender.use(f)
	connectUsers(t, m.keeper)
	m.client = &client{Client: service.NewClient(work.WorkerChannel{UID: 3000}, nil), keeper: m.keeper, creations: rate.New(limit.TokenCreations, gatewayNow)}
	rules := work.TokenRegister{Cluster: gatewaytokentest.Cluster, MinUID: 1000, SchedUID: 2000, Privileged: []string{"root", "slurm"}, Lifetime: lifetime}
	last := "none"
	look := func() {
		text, err := os.ReadFile(m.path)
		must(t, err)
		if string(text) != last {
			last, rules.Size = string(text), uint32(len(text))
			m.register.Store(readRegister(&rules, file(t, last)))
		}
	}
	look()
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				look()
			}
		}
	}()
	t.Cleanup(func() { close(done); <-ended })
	return m
}

// ask asks the keeper with a token.
func (m *managing) ask(token string, gateway bool, q query.ManageTokens) *query.TokensManaged {
	e := questionOf(token)
	q.Signed, q.MAC, q.Gateway = e.Signed, e.MAC, gateway
	return m.manage(m.client, &q, func() time.Time { return gatewayNow })
}

func (m *managing) text() string {
	text, err := os.ReadFile(m.path)
	must(m.t, err)
	return string(text)
}

// full returns a token of Slurm that is valid for an hour.
func full(user string) string {
	return slurmToken(fmt.Sprintf(`{"exp":%d,"iat":1,"sun":"%s"}`, gatewayNow.Add(time.Hour).Unix(), user))
}

var creation = query.ManageTokens{Action: query.CreateToken, Scopes: uint8(scope.ComputeRead | scope.ComputeCreate), Seconds: 60, Label: "ci"}

// TestManage checks who may do what with whose tokens, and that what is refused leaves
// the register as it is.
func TestManage(t *testing.T) {
	own := issue(t) // alice's
	bobs := gatewaytoken.Token{ID: strings.Repeat("B", 26), User: "bob", Scopes: scope.ComputeRead, Issued: gatewayNow, Expires: gatewayNow.Add(time.Hour)}
	alices := bobs
	alices.ID, alices.User = strings.Repeat("C", 26), "alice"
	register := bobs.Line() + alices.Line()
	bearer := string(exchanged(keeperOf(t, ""), questionOf(own), gatewayNow).Bearer)
	with := func(change func(*query.ManageTokens)) query.ManageTokens { q := creation; change(&q); return q }
	for _, tt := range []struct {
		name    string
		token   string
		gateway bool
		q       query.ManageTokens
		verdict query.Verdict
		result  query.ManageResult
		added   string // the beginning of the line that is added; "": none
	}{
		{"create", full("alice"), false, creation, query.Genuine, query.Managed, "token "},
		{"the own name", full("alice"), false, with(func(q *query.ManageTokens) { q.ActAs = "alice" }), query.Genuine, query.Managed, "token "},
		{"another name", full("alice"), false, with(func(q *query.ManageTokens) { q.ActAs = "bob" }), query.NotForUser, 0, ""},
		{"root for another user", full("root"), false, with(func(q *query.ManageTokens) { q.ActAs = "alice" }), query.NotForUser, 0, ""},
		{"root", full("root"), false, creation, query.Genuine, query.NotForThisUser, ""},
		{"SchedUser", full("slurm"), false, creation, query.Genuine, query.NotForThisUser, ""},
		{"a user of the system", full("games"), false, creation, query.Genuine, query.NotForThisUser, ""},
		{"an unknown user", full("zoe"), false, creation, query.Genuine, query.NotForThisUser, ""},
		{"a user who can't be looked up", full("slow"), false, creation, query.Genuine, query.RegisterClosed, ""},
		{"a gateway token", own, true, creation, query.Genuine, query.NotOfThisToken, ""},
		{"a gateway token as one of Slurm's", own, false, creation, query.Forged, 0, ""},
		{"what the daemons get for a gateway token", bearer, false, creation, query.Forged, 0, ""},
		{"a token of Slurm as a gateway token", full("alice"), true, creation, query.Forged, 0, ""},
		{"a forged signature", full("alice")[:strings.LastIndexByte(full("alice"), '.')+1] + strings.Repeat("A", 43), false, creation, query.Forged, 0, ""},
		{"no scope", full("alice"), false, with(func(q *query.ManageTokens) { q.Scopes = 0 }), query.Genuine, query.NotWhatIsSigned, ""},
		{"unknown scopes", full("alice"), false, with(func(q *query.ManageTokens) { q.Scopes = 255 }), query.Genuine, query.NotWhatIsSigned, ""},
		{"a line in the label", full("alice"), false, with(func(q *query.ManageTokens) { q.Label = "x\nrevoke all" }), query.Genuine, query.NotWhatIsSigned, ""},

		{"revoke oneself", own, true, query.ManageTokens{Action: query.RevokeOne}, query.Genuine, query.Managed, "revoke token " + gatewaytokentest.ID},
		{"revoke oneself by id", own, true, query.ManageTokens{Action: query.RevokeOne, Token: gatewaytokentest.ID}, query.Genuine, query.Managed, "revoke token " + gatewaytokentest.ID},
		{"a gateway token revokes another of its user", own, true, query.ManageTokens{Action: query.RevokeOne, Token: alices.ID}, query.Genuine, query.NotOfThisToken, ""},
		{"a gateway token revokes all of its user", own, true, query.ManageTokens{Action: query.RevokeOwn}, query.Genuine, query.NotOfThisToken, ""},
		{"the daemons' token revokes all", bearer, false, query.ManageTokens{Action: query.RevokeOwn}, query.Forged, 0, ""},
		{"revoke by id", full("alice"), false, query.ManageTokens{Action: query.RevokeOne, Token: alices.ID}, query.Genuine, query.Managed, "revoke token " + alices.ID},
		{"revoke another user's", full("alice"), false, query.ManageTokens{Action: query.RevokeOne, Token: bobs.ID}, query.Genuine, query.NoSuchToken, ""},
		{"root revokes a user's", full("root"), false, query.ManageTokens{Action: query.RevokeOne, Token: bobs.ID}, query.Genuine, query.NoSuchToken, ""},
		{"revoke one that is not recorded", full("alice"), false, query.ManageTokens{Action: query.RevokeOne, Token: gatewaytokentest.ID}, query.Genuine, query.NoSuchToken, ""},
		{"revoke nothing", full("alice"), false, query.ManageTokens{Action: query.RevokeOne}, query.Genuine, query.NoSuchToken, ""},
		{"revoke all", full("alice"), false, query.ManageTokens{Action: query.RevokeOwn}, query.Genuine, query.Managed, "revoke user alice before 2023-11-14T22:13:21Z"},
	} {
		m := newManaging(t, register, 0)
		a := m.ask(tt.token, tt.gateway, tt.q)
		added := strings.TrimPrefix(m.text(), register)
		if a.Verdict != tt.verdict || a.Result != tt.result || (tt.added == "") != (added == "") || !strings.HasPrefix(added, tt.added) || strings.Count(added, "\n") > 1 {
			t.Errorf("%s: verdict %d, result %d, added %q", tt.name, a.Verdict, a.Result, added)
		}
		if created := len(a.Token) > 0; created != (tt.added == "token ") {
			t.Errorf("%s: created %v", tt.name, created)
		}
	}
}

// TestCreatedToken checks what a created token says, and that it lives no longer than
// permitted.
func TestCreatedToken(t *testing.T) {
	for name, tt := range map[string]struct{ lifetime, seconds, want uint32 }{
		"as long as asked for":              {0, 60, 60},
		"no longer than the user's token":   {0, 7200, 3599}, // the hour ends with a fraction of a second
		"the default":                       {0, 0, 3599},
		"no longer than the administrator":  {7200, 9000, 7200},
		"the default, with another maximum": {366 * 86400, 0, 30 * 86400},
	} {
		m := newManaging(t, "revoke all before 2023-11-14T22:13:20Z\n", tt.lifetime)
		q := creation
		q.Seconds = tt.seconds
		a := m.ask(full("alice"), false, q)
		if a.Result != query.Managed {
			t.Errorf("%s: result %d", name, a.Result)
			continue
		}
		made, err := gatewaytoken.ParseSigned(a.Token[:strings.LastIndexByte(string(a.Token), '.')])
		must(t, err)
		if life := uint32(made.Expires.Sub(made.Issued).Seconds()); life != tt.want && life != tt.want+1 || made.User != "alice" || made.UID == nil || *made.UID != 1000 ||
			made.Scopes != scope.ComputeRead|scope.ComputeCreate || made.Label != "ci" || made.ActFor != "" {
			t.Errorf("%s: %d seconds, %+v", name, uint32(made.Expires.Sub(made.Issued).Seconds()), made)
		}
		if e := exchanged(m.keeper, questionOf(string(a.Token)), gatewayNow); e.Verdict != query.Genuine {
			t.Errorf("%s: it gets the verdict %d", name, e.Verdict)
		}
		list := m.ask(string(a.Token), true, query.ManageTokens{})
		if len(list.Tokens) != 1 || list.Tokens[0].ID != made.ID || list.More {
			t.Errorf("%s: it lists %+v", name, list.Tokens)
		}
	}
}

// TestManageLimits checks how many tokens a user can have, how many a worker can create,
// how often all can be revoked, and how lists are divided.
func TestManageLimits(t *testing.T) {
	var lines strings.Builder
	line := gatewaytoken.Token{User: "alice", Scopes: scope.ComputeRead, Issued: gatewayNow, Expires: gatewayNow.Add(time.Hour)}
	for range limit.GatewayTokens.Share {
		line.ID = gatewaytoken.NewID()
		lines.WriteString(line.Line())
	}
	m := newManaging(t, lines.String(), 0)
	if a := m.ask(full("alice"), false, creation); a.Result != query.TooManyTokens {
		t.Errorf("one more than the share: %d", a.Result)
	}
	if a := m.ask(full("bob"), false, creation); a.Result != query.Managed {
		t.Errorf("another user: %d", a.Result)
	}
	m.client.creations = rate.New(limit.TokenCreations.Of(1, 0), gatewayNow)
	for _, want := range []query.ManageResult{query.Managed, query.TooSoon} {
		if a := m.ask(full("bob"), false, creation); a.Result != want {
			t.Errorf("the worker creates as many as it may, and one more: %d, want %d", a.Result, want)
		}
	}
	m.client.creations = rate.New(limit.TokenCreations, gatewayNow)
	for end, want := range map[time.Duration]query.ManageResult{countedTime - time.Second: query.TooManyTokens, countedTime: query.Managed} {
		var ended strings.Builder
		for range limit.GatewayTokens.Share {
			ended.WriteString(gatewaytoken.Token{User: "alice", Scopes: scope.ComputeRead, Issued: gatewayNow.Add(-end), Expires: gatewayNow.Add(-time.Second), ID: gatewaytoken.NewID()}.Line())
		}
		if a := newManaging(t, ended.String(), 0).ask(full("alice"), false, creation); a.Result != want {
			t.Errorf("tokens that have ended, %v after they were created: %d, want %d", end, a.Result, want)
		}
	}
	seen := 0
	for more := true; more; {
		a := m.ask(full("alice"), false, query.ManageTokens{Skip: uint32(seen)})
		seen, more = seen+len(a.Tokens), a.More
	}
	if seen != limit.GatewayTokens.Share {
		t.Errorf("%d in the list", seen)
	}
	if a := m.ask(full("alice"), false, query.ManageTokens{Action: query.RevokeOwn}); a.Result != query.Managed {
		t.Errorf("revoke all: %d", a.Result)
	}
	before := m.text()
	if a := m.ask(full("alice"), false, query.ManageTokens{Action: query.RevokeOwn}); a.Result != query.Managed || m.text() != before {
		t.Errorf("again in the same second: %d", a.Result)
	}
	e := questionOf(full("alice"))
	q := query.ManageTokens{Signed: e.Signed, MAC: e.MAC, Action: query.RevokeOwn}
	if a := m.manage(m.client, &q, func() time.Time { return gatewayNow.Add(5 * time.Second) }); a.Result != query.TooSoon || m.text() != before {
		t.Errorf("again after five seconds: %d", a.Result)
	}
	if !slices.ContainsFunc(m.ask(full("alice"), false, query.ManageTokens{}).Tokens, func(l query.ListedToken) bool { return l.Revoked }) {
		t.Error("the list shows none as revoked")
	}
	m.appender.moved.Store(true)
	if a := m.ask(full("bob"), false, creation); a.Result != query.RegisterMoved {
		t.Errorf("a register that was replaced: %d", a.Result)
	}
	m.appender = newAppender()
	if a := m.ask(full("bob"), false, query.ManageTokens{Action: query.RevokeOwn}); a.Result != query.RegisterClosed {
		t.Errorf("a register that can't be written: %d", a.Result)
	}
}

// TestFullRegister checks that a user who fills the register, or its room for
// revocations, does not keep others from revoking their tokens.
func TestFullRegister(t *testing.T) {
	ended := func(user string, n int, revoked bool) string {
		var lines strings.Builder
		for range n {
			token := gatewaytoken.Token{User: user, Scopes: scope.ComputeRead, Issued: gatewayNow.Add(-2 * countedTime), Expires: gatewayNow.Add(-countedTime), ID: gatewaytoken.NewID()}
			lines.WriteString(token.Line())
			if revoked {
				lines.WriteString(gatewaytoken.RevokeToken(token.ID))
			}
		}
		return lines.String()
	}
	all := strings.Repeat(gatewaytoken.RevokeBefore("alice", gatewayNow.Add(-time.Hour)), limit.RegisterRevocations.Share)
	live := gatewaytoken.Token{User: "alice", Scopes: scope.ComputeRead, Issued: gatewayNow, Expires: gatewayNow.Add(time.Hour), ID: gatewaytoken.NewID()}
	upTo := func(text string, size int) string { return text + strings.Repeat("#", size-len(text)-1) + "\n" }
	revokeAll, revokeLive := query.ManageTokens{Action: query.RevokeOwn}, query.ManageTokens{Action: query.RevokeOne, Token: live.ID}
	const others = gatewaytoken.MaxRegister - gatewaytoken.ForRevocations
	for name, tt := range map[string]struct {
		register, user string
		q              query.ManageTokens
		want           query.ManageResult
	}{
		"as many tokens as a user may have":        {ended("alice", limit.RegisterTokens.Share, false), "alice", creation, query.RegisterFull},
		"another user's":                           {ended("alice", limit.RegisterTokens.Share, false), "bob", creation, query.Managed},
		"as many revocations as a user may have":   {all, "alice", revokeAll, query.RegisterFull},
		"another user's revocation":                {all, "bob", revokeAll, query.Managed},
		"a full register":                          {upTo("", others), "alice", creation, query.RegisterFull},
		"a revocation in a full register":          {upTo("", others), "alice", revokeAll, query.Managed},
		"one of a user with many":                  {upTo(ended("alice", fewRevocations, true), others), "alice", revokeAll, query.RegisterFull},
		"one token of a user with many":            {upTo(ended("alice", fewRevocations, true)+live.Line(), others), "alice", revokeLive, query.RegisterFull},
		"one of a user with many, elsewhere":       {ended("alice", fewRevocations, true) + live.Line(), "alice", revokeLive, query.Managed},
		"a revocation of another user in this one": {upTo(ended("alice", fewRevocations, true), others), "bob", revokeAll, query.Managed},
	} {
		if a := newManaging(t, tt.register, 0).ask(full(tt.user), false, tt.q); a.Result != tt.want {
			t.Errorf("%s: result %d, want %d", name, a.Result, tt.want)
		}
	}
}
