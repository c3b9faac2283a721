package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/rpc/message"
)

// TestGateIsShared checks many requests with one credential and a single
// request with another credential. The gate must admit the single request as
// soon as one of the many has ended.
func TestGateIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g gate
		many, other := owner{actAs: "ann"}, owner{actAs: "bob"}
		admitted := make(chan owner, 20)
		for _, o := range append(make([]owner, 10), other) {
			if o != other {
				o = many
			}
			go func() {
				if g.enter(context.Background(), o) == nil {
					admitted <- o
				}
			}()
			synctest.Wait()
		}
		if len(admitted) != maxLongRequests {
			t.Fatalf("%d are in", len(admitted))
		}
		for range maxLongRequests {
			<-admitted
		}
		g.leave(many)
		if o := <-admitted; o != other {
			t.Error("this request is behind all earlier ones")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := g.enter(ctx, other); errs.KindOf(err) != errs.Unavailable || len(g.queue) != 6 {
			t.Errorf("%v, %d wait", err, len(g.queue))
		}
		g.leave(other)
		for range maxLongRequests - 1 {
			g.leave(many)
		}
		for range 6 {
			g.leave(<-admitted)
		}
		if g.active != 0 || len(g.byOwner)+len(g.queue) != 0 {
			t.Errorf("afterwards: %+v", &g)
		}
	})
}

// TestExpectLong checks that the first answer to a list request is expected to
// be long. After a long answer, the next answers must also be expected to be
// long, for a while.
func TestExpectLong(t *testing.T) {
	t.Parallel()
	var s sizes
	now := time.Now()
	list := request{kind: message.RequestJobInfo, list: true}
	single := request{kind: message.RequestJobInfoSingle}
	check := func(step string, r request, at time.Duration, want bool) {
		t.Helper()
		if s.expectLong(r, now.Add(at)) != want {
			t.Errorf("%s: %t", step, !want)
		}
	}
	check("a list that was never requested", list, 0, true)
	check("one job", single, 0, false)
	s.record(list.kind, 2*maxShort, 3*maxShort, now)
	s.record(single.kind, 2*maxShort, 3*maxShort, now)
	check("a long list", list, 2*longAnswerTTL, true)
	check("a long array", single, 0, true)
	s.record(list.kind, 0, 3*maxShort, now)
	s.record(single.kind, 0, 3*maxShort, now)
	check("short since", list, longAnswerTTL/2, true)
	check("short for long", list, 2*longAnswerTTL, false)
	check("one job again", single, 0, false)
	s.record(list.kind, 4*maxShort, 3*maxShort, now)
	if check("longer than any allowance", list, 0, true); s.get(list.kind) != 0 {
		t.Error("it takes memory")
	}
}
