package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/rpc/message"
)

// waiting returns the number of requests that wait to enter.
func (g *gate) waiting() int {
	_, conns := g.conns.Counts()
	_, requests := g.requests.Counts()
	return conns + requests
}

func (g *gate) isEmpty() bool {
	conns, _ := g.conns.Counts()
	requests, _ := g.requests.Counts()
	return conns+requests+g.waiting() == 0
}

// TestGateIsShared checks many requests with one credential and a single
// request with another credential. The gate must admit the single request as
// soon as one of the many has ended.
func TestGateIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		many, other := "ann", "bob"
		admitted := make(chan *place, 20)
		for _, o := range append(make([]string, 10), other) {
			if o != other {
				o = many
			}
			go func() {
				if p, err := g.enter(context.Background(), o, false); err == nil {
					admitted <- p
				}
			}()
			synctest.Wait()
		}
		if len(admitted) != limit.LongRequests.Total {
			t.Fatalf("%d are in", len(admitted))
		}
		first := <-admitted
		first.leave()
		first.leave()
		var places []*place
		for range limit.LongRequests.Total {
			places = append(places, <-admitted)
		}
		if g.requests.Held(other) != 1 {
			t.Error("this request is behind all earlier ones")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := g.enter(ctx, other, false); errs.KindOf(err) != errs.Unavailable || g.waiting() != 6 {
			t.Errorf("%v, %d wait", err, g.waiting())
		}
		for _, p := range places {
			p.leave()
		}
		for range 6 {
			(<-admitted).leave()
		}
		if !g.isEmpty() {
			t.Errorf("afterwards: %+v", g)
		}
	})
}

// TestGateLimitsConnections checks answers that stay on their connections. They
// must not delay the requests of others until there are too many connections,
// and one credential must not get more than its share.
func TestGateLimitsConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		tryEnter := func(user string, streams bool) *place {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			p, _ := g.enter(ctx, user, streams)
			return p
		}
		var places []*place
		enter := func(user string, n int) {
			t.Helper()
			for i := range n {
				p := tryEnter(user, i%2 == 0) // some are requested before they enter, and others afterwards
				if p == nil {
					t.Fatalf("%s got %d connections", user, i)
				}
				p.stream()
				places = append(places, p)
			}
			if tryEnter(user, true) != nil || tryEnter(user, false) != nil {
				t.Errorf("%s got more than %d connections", user, n)
			}
		}
		enter("ann", limit.LongConns.Share)
		enter("ben", limit.LongConns.Total-limit.LongConns.Share)
		if tryEnter("eva", false) != nil {
			t.Errorf("more than %d connections", limit.LongConns.Total)
		}
		places[0].leave()
		if places = append(places, tryEnter("eva", false)); places[len(places)-1] == nil {
			t.Error("a connection that has ended still counts")
		}
		for _, p := range places {
			p.leave()
		}
		if !g.isEmpty() {
			t.Errorf("afterwards: %+v", g)
		}
	})
}

// TestExpectLong checks that the first answer to a list request is expected to
// be long. After a long answer, the next answers must also be expected to be
// long, for a while.
func TestExpectLong(t *testing.T) {
	t.Parallel()
	var l longAnswers
	now := time.Now()
	list := request{kind: message.RequestJobInfo, list: true}
	single := request{kind: message.RequestJobInfoSingle}
	check := func(step string, r request, at time.Duration, want bool) {
		t.Helper()
		if l.expects(r, now.Add(at)) != want {
			t.Errorf("%s: %t", step, !want)
		}
	}
	check("a list that was never requested", list, 0, true)
	check("one job", single, 0, false)
	l.record(list.kind, 0, now)
	check("a short list", list, 0, false)
	for _, r := range []request{list, single} {
		l.record(r.kind, 2*maxShort, now)
		l.record(r.kind, 0, now)
		check("short since", r, longAnswerTTL/2, true)
		check("short for long", r, 2*longAnswerTTL, false)
	}
}
