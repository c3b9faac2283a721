package handlers

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// levelDaemon is an accounting daemon that knows the levels of users.
type levelDaemon struct {
	Accounting
	asked  atomic.Int32
	answer func(ctx context.Context, user string) (level uint16, err error)
}

func (d *levelDaemon) List(ctx context.Context, cred model.Credential, l model.Listing) error {
	d.asked.Add(1)
	user := l.Filter.(model.UserFilter).Assoc.Users[0]
	if cred.ActAs != user {
		return errors.New("asked as " + cred.ActAs)
	}
	level, err := d.answer(ctx, user)
	if err != nil || level == 0 {
		return err
	}
	return l.Each.(func(*model.User) error)(&model.User{Name: user, AdminLevel: level})
}

// TestLevels checks for which users a token of a portal may act, and for how long an
// answer is remembered.
func TestLevels(t *testing.T) {
	refusal := errs.New(errs.Denied, "no")
	now := time.Now()
	for _, tt := range []struct {
		name  string
		level uint16 // 0: the daemon has no record of the user
		err   error
		kind  errs.Kind
	}{
		{"no record", 0, nil, 0}, {"none", adminNone, nil, 0}, {"operator", operator, nil, errs.Denied}, {"administrator", administrator, nil, errs.Denied},
		{"a later level", administrator + 1, nil, errs.Denied},
		{"the daemon is down", 0, errs.New(errs.Unavailable, "down"), errs.Unavailable},
		{"the daemon accepts no tokens", 0, errs.New(errs.Unauthenticated, "no"), errs.Unavailable},
		{"the daemon refuses", 0, refusal, errs.Unavailable},
	} {
		d := &levelDaemon{answer: func(context.Context, string) (uint16, error) { return tt.level, tt.err }}
		l := newLevels(d)
		l.now = func() time.Time { return now }
		for range 2 {
			err := l.checkMember(t.Context(), model.Credential{ActAs: "alice"}, "alice")
			if (err == nil) != (tt.kind == 0) || err != nil && errs.KindOf(err) != tt.kind {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		want := int32(1)
		if tt.err != nil {
			want = 2 // a failure is not remembered
		}
		if n := d.asked.Swap(0); n != want {
			t.Errorf("%s: asked %d times", tt.name, n)
		}
		if err := l.checkMember(t.Context(), model.Credential{ActAs: "bob"}, "bob"); (err == nil) != (tt.kind == 0) || d.asked.Swap(0) != 1 {
			t.Errorf("%s: another user: %v", tt.name, err)
		}
		l.now = func() time.Time { return now.Add(levelTTL) }
		if _ = l.checkMember(t.Context(), model.Credential{ActAs: "alice"}, "alice"); d.asked.Load() != 1 {
			t.Errorf("%s: not asked again", tt.name)
		}
	}
}

// TestLevelsShared checks that concurrent requests of a user cause one question, that
// one of them asks again if the client of the first has gone, and that no request
// waits for a daemon that does not answer.
func TestLevelsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &levelDaemon{answer: func(ctx context.Context, user string) (uint16, error) {
			if user == "slow" {
				<-ctx.Done()
				return 0, errs.Wrap(ctx.Err(), errs.Unavailable, "no answer")
			}
			select {
			case <-time.After(time.Second):
				return operator, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}}
		l := newLevels(d)
		first, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		check := func(ctx context.Context, user string, kind errs.Kind) {
			wg.Go(func() {
				if err := l.checkMember(ctx, model.Credential{ActAs: user}, user); errs.KindOf(err) != kind || err == nil {
					t.Errorf("%s: %v", user, err)
				}
			})
		}
		check(first, "alice", errs.Unavailable)
		synctest.Wait()
		for range 10 {
			check(t.Context(), "alice", errs.Denied)
		}
		synctest.Wait()
		leave()
		wg.Wait()
		if n := d.asked.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
		begun := time.Now()
		check(t.Context(), "slow", errs.Unavailable)
		check(t.Context(), "slow", errs.Unavailable)
		wg.Wait()
		if took := time.Since(begun); took > levelTimeout {
			t.Errorf("waited for %v", took)
		}
	})
}

// TestPortalOfAdministrator checks the answers to requests with the token of a
// portal, and that other credentials are not looked up.
func TestPortalOfAdministrator(t *testing.T) {
	var excused atomic.Int32
	_, _, server, request := gatewayServer(t, &excused, func(c *Config) {
		c.Levels = &levelDaemon{answer: func(_ context.Context, user string) (uint16, error) {
			switch user {
			case "boss":
				return administrator, nil
			case "down":
				return 0, errs.New(errs.Unavailable, "down")
			}
			return adminNone, nil
		}}
	})
	portal := func(t *gatewaytoken.Token) { t.User, t.ActFor = "portal", "students" }
	for _, tt := range []struct {
		name, user string
		change     func(*gatewaytoken.Token)
		scopes     scope.Set
		status     int
		text       string
	}{
		{"a member", "alice", portal, scope.ComputeRead, 200, `"alice"`},
		{"an administrator", "boss", portal, scope.ComputeRead, 403, "the token does not act for this user"},
		{"no answer about the user", "down", portal, scope.ComputeRead, 503, "can't be found out"},
		{"no scope", "down", portal, scope.ComputeCreate, 403, "needs compute.read"},
		{"no name", "", portal, scope.ComputeRead, 401, "no valid credential"},
		{"another gateway token", "", func(t *gatewaytoken.Token) { t.User = "boss" }, scope.ComputeRead, 200, `"boss"`},
	} {
		r := request(tt.scopes, "GET", "/sched/v0.0.43/jobs/", "", tt.change)
		if tt.user != "" {
			r.Header.Set("X-SCHED-USER-NAME", tt.user)
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.text) {
			t.Errorf("%s: %d %.400s", tt.name, w.Code, w.Body)
		}
	}
}
