package ctld

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/auth"
	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// safeBuffer is a log that can be read and written concurrently.
type safeBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func testKey(t *testing.T) auth.Key {
	t.Helper()
	key, err := auth.NewKey([]byte("a key of 32 bytes, of tests alone"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The type odd is a user database. It contains the users of the type known, and
// also users whose tokens no daemon accepts.
type odd struct{ known }

func (o odd) LookupUser(name string) (nss.User, error) {
	for _, uid := range []uint32{1101, 1102, 65534} {
		if u, _ := o.LookupUID(uid); u.Name == name {
			return u, nil
		}
	}
	return o.known.LookupUser(name)
}

func (o odd) LookupUID(uid uint32) (nss.User, error) {
	switch uid {
	case 1101:
		return nss.User{Name: "stray", UID: uid, GID: 65534}, nil
	case 1102:
		return nss.User{Name: "wheel", UID: uid}, nil
	case 65534:
		return nss.User{Name: "nobody", UID: uid, GID: uid}, nil
	}
	return o.known.LookupUID(uid)
}

// TestTokens checks for which users a client may create tokens, and with which
// lifespans.
func TestTokens(t *testing.T) {
	key := testKey(t)
	verifier := auth.Verifier{Key: key}
	const denied, unknown, tooLong, bad = fault.AccessDenied, fault.UnknownUser, fault.InvalidTimeLimit, fault.BadUser
	tests := []struct {
		name     string
		uid      uint32
		user     string
		lifespan uint32
		private  bool
		want     string // name of the user in the token
		seconds  int64
		number   int // of the refusal, when want is empty
	}{
		{name: "own", uid: 1000, want: "ann", seconds: 1800},
		{name: "own, by name", uid: 1000, user: "ann", lifespan: 60, want: "ann", seconds: 60},
		{name: "not set, in Slurm's form", uid: 1000, lifespan: 0xfffffffe, want: "ann", seconds: 1800},
		{name: "the longest lifespan", uid: 1000, lifespan: 7200, want: "ann", seconds: 7200},
		{name: "one second", uid: 1000, lifespan: 1, want: "ann", seconds: 1},
		{name: "a second too long", uid: 1000, lifespan: 7201, number: tooLong},
		{name: "too long for root, too", uid: 0, lifespan: 7201, number: tooLong},
		{name: "unlimited", uid: 1000, lifespan: 0xffffffff, number: tooLong},
		{name: "negative, in 32 bits", uid: 1000, lifespan: 1<<32 - 1800, number: tooLong},
		{name: "for another user", uid: 1000, user: "bea", number: denied},
		{name: "for root", uid: 1000, user: "root", number: denied},
		{name: "own, in capitals", uid: 1000, user: "ANN", number: denied},
		// A token for an unknown user is refused with the same error as a token
		// for an existing user, so that clients can't find out which users
		// exist.
		{name: "for an unknown user", uid: 1000, user: "zoe", number: denied},
		{name: "root for another", uid: 0, user: "bea", want: "bea", seconds: 1800},
		{name: "root for itself", uid: 0, want: "root", seconds: 1800},
		{name: "root, for an unknown user", uid: 0, user: "zoe", number: unknown},
		{name: "root for a number", uid: 0, user: "1000", number: unknown},
		{name: "the scheduler's user for root", uid: 1002, user: "root", want: "root", seconds: 1800},
		{name: "users may not", uid: 1000, private: true, number: denied},
		{name: "users may not, by name", uid: 1000, user: "ann", private: true, number: denied},
		{name: "root may", uid: 0, user: "ann", private: true, want: "ann", seconds: 1800},
		{name: "root may for itself", uid: 0, private: true, want: "root", seconds: 1800},
		{name: "the scheduler's user may", uid: 1002, user: "ann", private: true, want: "ann", seconds: 1800},
		{name: "the scheduler's user may for itself", uid: 1002, private: true, want: "sched", seconds: 1800},
		{name: "a user without a name", uid: 5, number: unknown},
		{name: "for the user nobody", uid: 0, user: "nobody", number: bad},
		{name: "for a user in group 0", uid: 0, user: "wheel", number: bad},
		{name: "for a user in the group nogroup", uid: 1002, user: "stray", number: bad},
		{name: "own, of a user in group 0", uid: 1102, number: bad},
		{name: "own, of a user in group 0, by name", uid: 1102, user: "wheel", number: bad},
		{name: "for the user nobody, by another user", uid: 1000, user: "nobody", number: denied}, // permission is checked before the user is looked up
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Controller{log: quiet, cfg: Config{Users: odd{}, SchedUser: 1002,
				Tokens: &Tokens{Key: key, AdminOnly: tt.private, MaxLifespan: 2 * time.Hour}}}
			token, _, _, err := c.token(server.Identity{UID: tt.uid, FromKernel: true},
				&message.TokenRequest{Username: tt.user, Lifespan: tt.lifespan})
			if tt.want == "" {
				if number, _ := fault.Number(err); err == nil || int(number) != tt.number || token != "" {
					t.Errorf("%q, %v; want number %d", token, err, tt.number)
				}
				return
			}
			claims, err := verifier.Verify(token)
			if err != nil || claims.User != tt.want || claims.Expires.Unix()-claims.IssuedAt.Unix() != tt.seconds {
				t.Errorf("%+v, %v", claims, err)
			}
		})
	}
}

// TestTokenLifespanIsBoundedByCredential checks that a client with a stolen
// token can't create a token that expires later than the stolen one.
func TestTokenLifespanIsBoundedByCredential(t *testing.T) {
	c := &Controller{log: quiet, cfg: Config{Tokens: &Tokens{MaxLifespan: 30 * 24 * time.Hour}}}
	expiresIn := func(d time.Duration) server.Identity { return server.Identity{Expires: time.Now().Add(d)} }
	tests := []struct {
		name     string
		client   server.Identity
		seconds  uint32
		min, max time.Duration // the lifespan is between them; 0: refused
	}{
		{"kernel", server.Identity{FromKernel: true}, 86400, 24 * time.Hour, 24 * time.Hour},
		{"kernel, for years", server.Identity{FromKernel: true}, 366 * 86400, 0, 0},
		{"by a token of a minute", expiresIn(time.Minute), 366 * 86400 / 13, 50 * time.Second, time.Minute},
		{"by a token of a minute, for less", expiresIn(time.Minute), 10, 10 * time.Second, 10 * time.Second},
		{"by a token in its leeway", expiresIn(-time.Second), 10, 0, 0},
		{"by a token without an end", server.Identity{}, 10, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.lifespan(tt.client, tt.seconds)
			if (err != nil) != (tt.max == 0) || got < tt.min || got > tt.max {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// TestDefaultLifespanIsBounded checks that the default lifespan does not
// exceed the longest lifespan that the site permits.
func TestDefaultLifespanIsBounded(t *testing.T) {
	c := &Controller{log: quiet, cfg: Config{Tokens: &Tokens{MaxLifespan: time.Minute}}}
	client := server.Identity{FromKernel: true}
	if d, err := c.lifespan(client, 0); d != time.Minute || err != nil {
		t.Errorf("not set: %v, %v", d, err)
	}
	if _, err := c.lifespan(client, 61); err == nil || !strings.Contains(err.Error(), "is 60 seconds") {
		t.Errorf("61 seconds: %v", err)
	}
}

// TestCreationIsConfigured checks which keys must be configured for the
// controller to create tokens.
func TestCreationIsConfigured(t *testing.T) {
	key := testKey(t)
	tokensFor := func(a conf.Auth, key *auth.Key) *Tokens {
		t.Helper()
		c := &conf.Cluster{Path: "c", Controllers: []conf.Host{{Name: "h", Address: "h"}}, StateSaveLocation: "/s", Auth: a}
		cfg, err := configure(c, nss.User{}, key, "", quiet)
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Tokens
	}
	if got := tokensFor(conf.Auth{JWT: true, JWKS: "/j"}, nil); got != nil {
		t.Errorf("a key set alone creates tokens: %+v", got)
	}
	if got := tokensFor(conf.Auth{}, nil); got != nil {
		t.Errorf("no key creates tokens: %+v", got)
	}
	if got := tokensFor(conf.Auth{JWT: true, JWKS: "/j", JWTKey: "/k"}, &key); got == nil || got.AdminOnly || got.MaxLifespan != 30*24*time.Hour {
		t.Errorf("a key beside a key set: %+v", got)
	}
	a := conf.Auth{JWT: true, JWTKey: "/k", DisableTokenCreation: true, MaxTokenLifespan: time.Minute}
	if got := tokensFor(a, &key); got == nil || !got.AdminOnly || got.MaxLifespan != time.Minute {
		t.Errorf("users may create no tokens, and a lifespan is at most a minute: %+v", got)
	}
}

// TestKillWaitIsConfigured checks that the controller uses the site's KillWait,
// and otherwise Slurm's default.
func TestKillWaitIsConfigured(t *testing.T) {
	for configured, want := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Minute: time.Minute} {
		c := &conf.Cluster{Path: "c", Controllers: []conf.Host{{Name: "h", Address: "h"}}, StateSaveLocation: "/s", KillWait: configured}
		cfg, err := configure(c, nss.User{}, nil, "", quiet)
		if err != nil {
			t.Fatal(err)
		}
		controller := Controller{cfg: cfg}
		controller.setDefaults()
		if got := controller.cfg.KillWait; got != want {
			t.Errorf("KillWait %v: %v, want %v", configured, got, want)
		}
	}
}

// TestTokenRequests checks token requests that clients send over RPC. The log
// must name the client and the user of the new token, but must never contain a
// token.
func TestTokenRequests(t *testing.T) {
	self, err := nss.LookupUID(ownUser.UID)
	if err != nil {
		t.Skip("the user of this process has no name")
	}
	var log safeBuffer
	c, _ := controller(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Tokens: &Tokens{Key: testKey(t), MaxLifespan: time.Hour}})
	rpc, ctx := newClient(t, c, codec.Newest), t.Context()
	token, err := rpc.Token(ctx, model.Credential{}, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := auth.Verifier{Key: testKey(t)}.Verify(token)
	if err != nil || claims.User != self.Name || claims.Expires.Sub(claims.IssuedAt) != 1800*time.Second {
		t.Errorf("%+v, %v", claims, err)
	}
	if _, err := rpc.Token(ctx, model.Credential{}, "", time.Hour+time.Second); errs.KindOf(err) != errs.Invalid {
		t.Errorf("too long: %v", err)
	}
	text := log.String()
	for _, want := range []string{
		`msg="token created" for=` + self.Name + ` lifespan=30m0s uid=`,
		`msg="token refused" error="the longest lifespan of a token is 3600 seconds" uid=`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %s:\n%s", want, text)
		}
	}
	if _, err := rpc.Token(ctx, model.Credential{}, token, 0); err == nil {
		t.Error("a token was created for a user whose name looks like a token")
	}
	text = log.String()
	for part := range strings.SplitSeq(token, ".") {
		if strings.Contains(text, part) {
			t.Errorf("a part of the token is in the log:\n%s", text)
		}
	}
	c, _ = controller(t, Config{})
	_, err = newClient(t, c, codec.Newest).Token(ctx, model.Credential{}, "", 0)
	if errs.KindOf(err) != errs.Unavailable || !strings.Contains(errs.HintOf(err), "jwt_key=") {
		t.Errorf("without a key: %v, %s", err, errs.HintOf(err))
	}
}

// TestClientAttrs checks that the log names both users when one user acts on
// behalf of another.
func TestClientAttrs(t *testing.T) {
	for want, id := range map[string]server.Identity{
		"job=7 uid=1000 peer=p":                     {UID: 1000, FromKernel: true},
		"job=7 uid=1000 user=ann peer=p":            {UID: 1000, Name: "ann"},
		"job=7 uid=1000 user=ann by=root peer=p":    {UID: 1000, Name: "ann", TokenUser: "root"},
		`job=7 uid=1000 user=ann by="x y=z" peer=p`: {UID: 1000, Name: "ann", TokenUser: "x y=z"},
	} {
		var log safeBuffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", clientAttrs(&server.Request{Identity: id, Peer: "p"}, "job", 7)...)
		if got := strings.TrimSpace(log.String()); !strings.HasSuffix(got, "msg=m "+want) {
			t.Errorf("%s: want %s", got, want)
		}
	}
}
