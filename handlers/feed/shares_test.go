package feed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/model"
)

// slowList is a source that the test lets read. It records the order in which
// the users' passes begin.
type slowList struct {
	mu      sync.Mutex
	reading []string                 // users whose passes are reading, in order
	proceed map[string]chan struct{} // ends the passes of a user
}

func (l *slowList) source(name, user string) Source[item] {
	return Source[item]{Name: name, Whole: true, Read: func(context.Context, model.Query, func(*item) error) (model.ListTimes, error) {
		l.mu.Lock()
		l.reading = append(l.reading, user)
		l.mu.Unlock()
		<-l.proceed[user]
		return model.ListTimes{}, nil
	}}
}

// began returns the users whose passes have begun, in order.
func (l *slowList) began() string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.reading, " ")
}

// TestPassesTakeTurns checks that a user with many feeds, whose passes take long,
// delays no pass of another user, and that of several users who wait, the one
// with the fewest passes comes next.
func TestPassesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowList{proceed: map[string]chan struct{}{"mallory": make(chan struct{}), "bob": make(chan struct{}), "carol": make(chan struct{})}}
		set := &Set[item]{Key: func(i *item) string { return i.key }, Interval: time.Hour, Shares: NewShares()}
		ctx, leave := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		join := func(user string, token int, name string) {
			clients.Go(func() {
				if v, err := set.Join(ctx, Owner{fmt.Sprint(token, " of ", user), user}, interest(-1), l.source(name, user)); err == nil {
					v.Leave()
				}
			})
			synctest.Wait()
		}
		for n := range 20 {
			join("mallory", n%3, fmt.Sprint("list ", n))
		}
		if got := l.began(); got != "mallory mallory" {
			t.Fatalf("passes of one user: %s", got)
		}
		join("bob", 0, "list")
		if got := l.began(); got != "mallory mallory bob" {
			t.Fatalf("another user waits: %s", got)
		}
		join("bob", 0, "another list")
		join("carol", 0, "list")
		l.proceed["mallory"] <- struct{}{}
		if got := l.began(); got != "mallory mallory bob carol" {
			t.Fatalf("the user without a pass is not the next one: %s", got)
		}
		l.proceed["mallory"] <- struct{}{}
		if got := l.began(); !slices.Contains([]string{"mallory mallory bob carol bob", "mallory mallory bob carol mallory"}, got) {
			t.Fatalf("a turn is free: %s", got)
		}
		leave()
		for _, proceed := range l.proceed {
			close(proceed)
		}
		clients.Wait()
		time.Sleep(3 * set.Interval) // until the feeds have ended
	})
}

// TestFeedsOfUser checks that the feeds of a user are limited, whatever tokens
// they have, that whole lists count more, and that feeds that have ended do not
// count.
func TestFeedsOfUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{items: map[string]item{"a": {key: "a"}}}
		set := &Set[item]{Key: func(i *item) string { return i.key }, Interval: time.Second, Shares: NewShares()}
		other := &Set[item]{Key: set.Key, Interval: time.Second, Shares: set.Shares}
		var views []*View[item]
		join := func(set *Set[item], user string, token int, whole bool) error {
			v, err := set.Join(t.Context(), Owner{fmt.Sprint(token, " of ", user), user}, interest(-1), c.source(fmt.Sprint(token), whole, everything))
			if err == nil {
				views = append(views, v)
			}
			return err
		}
		for n := range limit.Feeds.Share/limit.WholeList - 1 {
			if err := join([]*Set[item]{set, other}[n%2], "mallory", n, true); err != nil {
				t.Fatalf("feed %d: %v", n, err)
			}
		}
		for n := range limit.WholeList {
			if err := join(set, "mallory", 1000+n, false); err != nil {
				t.Fatalf("narrow feed %d: %v", n, err)
			}
		}
		for _, whole := range []bool{true, false} {
			if err := join(other, "mallory", 2000, whole); errs.KindOf(err) != errs.TooMany {
				t.Errorf("too many feeds of one user: %v", err)
			}
		}
		if err := join(set, "mallory", 0, true); err != nil {
			t.Errorf("a list that is read already: %v", err)
		}
		if err := join(set, "bob", 0, true); err != nil {
			t.Errorf("another user: %v", err)
		}
		for _, v := range views {
			v.Leave()
		}
		views = nil
		time.Sleep(2 * linger)
		if err := join(set, "mallory", 3000, true); err != nil {
			t.Errorf("after the others have ended: %v", err)
		}
		views[0].Leave()
		time.Sleep(2 * linger)
	})
}
