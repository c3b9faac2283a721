package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/errs"
	"schedrestd/rpc/message"
)

// TestGateIsShared checks many requests with one credential and a single
// request with another credential. The single request must be admitted as soon
// as one of the others has ended.
func TestGateIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g gate
		many, other := owner{actAs: "ann"}, owner{actAs: "bob"}
		in := make(chan owner, 20)
		for _, who := range append(make([]owner, 10), other) {
			if who != other {
				who = many
			}
			go func() {
				if g.enter(context.Background(), who) == nil {
					in <- who
				}
			}()
			synctest.Wait()
		}
		if len(in) != mostAsked {
			t.Fatalf("%d are in", len(in))
		}
		for range mostAsked {
			<-in
		}
		g.leave(many)
		if who := <-in; who != other {
			t.Error("this request is behind all earlier ones")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := g.enter(ctx, other); errs.KindOf(err) != errs.Unavailable || len(g.queue) != 6 {
			t.Errorf("%v, %d wait", err, len(g.queue))
		}
		g.leave(other)
		for range mostAsked - 1 {
			g.leave(many)
		}
		for range 6 {
			g.leave(<-in)
		}
		if g.open != 0 || len(g.inside)+len(g.queue) != 0 {
			t.Errorf("afterwards: %+v", &g)
		}
	})
}

// TestExpectLong checks that the first answer to a list request is expected to
// be long. After a long answer, the next answers must be expected to be long
// for a while.
func TestExpectLong(t *testing.T) {
	t.Parallel()
	var s sizes
	now := time.Now()
	list := request{kind: message.RequestJobInfo, list: true}
	one := request{kind: message.RequestJobInfoSingle}
	is := func(when string, r request, at time.Duration, want bool) {
		t.Helper()
		if s.expectLong(r, now.Add(at)) != want {
			t.Errorf("%s: %t", when, !want)
		}
	}
	is("a list that was never requested", list, 0, true)
	is("one job", one, 0, false)
	s.note(list.kind, 2*mostShort, 3*mostShort, now)
	s.note(one.kind, 2*mostShort, 3*mostShort, now)
	is("a long list", list, 2*longFor, true)
	is("a long array", one, 0, true)
	s.note(list.kind, 0, 3*mostShort, now)
	s.note(one.kind, 0, 3*mostShort, now)
	is("short since", list, longFor/2, true)
	is("short for long", list, 2*longFor, false)
	is("one job again", one, 0, false)
	s.note(list.kind, 4*mostShort, 3*mostShort, now)
	if is("longer than any allowance", list, 0, true); s.get(list.kind) != 0 {
		t.Error("it takes memory")
	}
}
