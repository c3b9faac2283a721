package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/origin"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// clock is a controller whose answers contain the number of the request that
// they answer: the id of the only job in a list.
type clock struct {
	client.Address
	asked   atomic.Int32 // requests for lists that have arrived
	open    atomic.Int32 // those that are not answered yet
	most    atomic.Int32
	shared  atomic.Int32 // requests that were not necessary, because they shared an answer
	kept    atomic.Int32 // the same, because the answer was kept
	proceed func()       // called before each answer
}

func newClock(t *testing.T, proceed func()) *clock {
	k := &clock{proceed: proceed}
	k.Address = script(t, "ctl", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing {
			rc(nc, r.Version, 0)
			return
		}
		n := k.asked.Add(1)
		if open := k.open.Add(1); open > k.most.Load() {
			k.most.Store(open)
		}
		k.proceed()
		answer := &message.JobInfo{}
		answer.Jobs.List = []model.Job{{StepID: model.StepID{JobID: uint32(n)}}}
		b, err := message.Encode(r.Version, 0, message.ResponseJobInfo, nil, answer)
		if err != nil {
			t.Error(err)
		}
		k.open.Add(-1)
		nc.Write(b)
	}).Address
	return k
}

func (k *clock) client() *client.Client {
	return client.New(client.Config{Controllers: []client.Address{k.Address}, Reused: func(kept bool) {
		if kept {
			k.kept.Add(1)
		} else {
			k.shared.Add(1)
		}
	}})
}

// TestSharedAnswersAreNotOld sends many requests for the same list, and checks
// that no answer is older than the request that got it, that only one request
// is under way at a time, and that the requests cost the controller few.
func TestSharedAnswersAreNotOld(t *testing.T) {
	t.Parallel()
	k := newClock(t, func() { time.Sleep(time.Millisecond) })
	c := k.client()
	var wait sync.WaitGroup
	const calls = 400
	for i := range calls {
		wait.Go(func() {
			time.Sleep(rand.N(40 * time.Millisecond))
			before := uint32(k.asked.Load())
			_, err := c.Jobs(context.Background(), ann, model.Query{}, func(j *model.Job) error {
				if j.StepID.JobID <= before {
					t.Errorf("call %d: answer %d, but the controller had already been asked %d times", i, j.StepID.JobID, before)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if asked, most := k.asked.Load(), k.most.Load(); asked >= calls || most != 1 {
		t.Errorf("%d requests reached the controller, %d at the same time", asked, most)
	}
	if asked, shared := k.asked.Load(), k.shared.Load(); asked+shared != calls {
		t.Errorf("%d requests reached the controller, and %d were not necessary, of %d", asked, shared, calls)
	}
}

// TestOnlyEqualRequestsShare checks that requests of different users, or
// different requests of the same user, share no answer.
func TestOnlyEqualRequestsShare(t *testing.T) {
	t.Parallel()
	var together sync.WaitGroup
	together.Add(4)
	k := newClock(t, func() { together.Done(); together.Wait() }) // answers only when all have arrived
	c := k.client()
	if err := c.Verify(context.Background(), ann); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	ask := func(cred model.Credential, q model.Query) {
		wait.Go(func() {
			if _, err := c.Jobs(context.Background(), cred, q, func(*model.Job) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	ask(ann, model.Query{})
	ask(ann, model.Query{Flags: model.ShowAll})
	ask(model.Credential{Token: ann.Token, ActAs: "ben"}, model.Query{})
	ask(model.Credential{Token: "another token"}, model.Query{})
	wait.Wait()
}

// TestLeavingASharedRequest checks that a client that disconnects does not end
// the request for the others, and that the last one that disconnects ends it.
func TestLeavingASharedRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dialled, ended := 0, 0
		c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: "192.0.2.1:6817"}}, Timeout: time.Hour, ConnectTimeout: time.Hour,
			Dial: func(ctx context.Context, a client.Address) (net.Conn, error) {
				dialled++
				<-ctx.Done()
				ended++
				return nil, ctx.Err()
			}})
		var wait sync.WaitGroup
		var leave []context.CancelFunc
		for range 3 {
			ctx, cancel := context.WithCancel(context.Background())
			leave = append(leave, cancel)
			wait.Go(func() {
				if err := c.Verify(ctx, ann); err == nil {
					t.Error("a call that has left got an answer")
				}
			})
			synctest.Wait()
		}
		for i, cancel := range leave {
			cancel()
			synctest.Wait()
			if want := i / 2; dialled != 1 || ended != want {
				t.Errorf("after %d left: %d dialled, %d ended", i+1, dialled, ended)
			}
		}
		wait.Wait()
	})
}

// TestJoiningAnAbandonedRequest checks that a call that joins a request at the
// moment when its only client has left does not fail with it.
func TestJoiningAnAbandonedRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dialled := 0
		proceed := make(chan struct{})
		c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: "192.0.2.1:6817"}}, Timeout: time.Hour, ConnectTimeout: time.Hour,
			Dial: func(ctx context.Context, a client.Address) (net.Conn, error) {
				if dialled++; dialled > 1 {
					return nil, errors.New("the second request")
				}
				<-proceed
				return nil, ctx.Err()
			}})
		ctx, cancel := context.WithCancel(context.Background())
		var wait sync.WaitGroup
		wait.Go(func() { _ = c.Verify(ctx, ann) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		wait.Go(func() {
			if err := c.Verify(context.Background(), ann); err == nil || !strings.Contains(err.Error(), "the second request") {
				t.Errorf("error %v", err)
			}
		})
		synctest.Wait()
		close(proceed)
		wait.Wait()
		if series, _ := c.Remembered(); series != 0 {
			t.Errorf("%d requests are still remembered", series)
		}
	})
}

// TestJoiningAnImpatientRequest checks that a call does not fail when the time of
// the first call of its round is over, but asks again.
func TestJoiningAnImpatientRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dialled := 0
		c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: "192.0.2.1:6817"}}, Timeout: time.Hour, ConnectTimeout: time.Hour,
			Dial: func(ctx context.Context, a client.Address) (net.Conn, error) {
				if dialled++; dialled > 1 {
					return nil, errors.New("the second request")
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var wait sync.WaitGroup
		wait.Go(func() {
			if err := c.Verify(ctx, ann); err == nil {
				t.Error("no controller answers the first call")
			}
		})
		synctest.Wait()
		if err := c.Verify(context.Background(), ann); err == nil || !strings.Contains(err.Error(), "the second request") {
			t.Errorf("error %v", err)
		}
		wait.Wait()
	})
}

// TestNextRoundWaitsForUse checks that calls that share a long answer delay the
// next request until the first of them has used it, but not for longer than a
// second, and that a short answer, or one that is not shared, delays nothing.
func TestNextRoundWaitsForUse(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tt := range []struct {
		name string
		jobs int
		use  []time.Duration // of the second answer, by the calls that share it
		want time.Duration   // from the second request to the third
	}{
		{"used by one of two", 1000, []time.Duration{300 * ms, time.Minute}, 301 * ms},
		{"used slowly by both", 1000, []time.Duration{time.Minute, time.Minute}, 1001 * ms},
		{"not shared", 1000, []time.Duration{time.Minute}, 1 * ms},
		{"short", 1, []time.Duration{time.Minute, time.Minute}, 1 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var asked []time.Time
				c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: "192.0.2.1:6817"}}, Timeout: time.Hour, ConnectTimeout: time.Hour,
					Dial: dialPipe(func(nc net.Conn, f message.Frame) {
						if f.Header.Type == message.RequestPing {
							rc(nc, f.Header.Version, 0)
							return
						}
						asked = append(asked, time.Now())
						time.Sleep(ms)
						jobs := &message.JobInfo{}
						jobs.Jobs.List = make([]model.Job, tt.jobs)
						answer(nc, f.Header.Version, message.ResponseJobInfo, jobs)
					})})
				if err := c.Verify(t.Context(), ann); err != nil {
					t.Fatal(err)
				}
				var wait sync.WaitGroup
				ask := func(use time.Duration) {
					wait.Go(func() {
						if _, err := c.Jobs(t.Context(), ann, model.Query{}, func(*model.Job) error { time.Sleep(use / time.Duration(tt.jobs)); return nil }); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				ask(0)
				for _, use := range tt.use {
					ask(use)
				}
				time.Sleep(ms) // the second request has been sent
				synctest.Wait()
				ask(0)
				wait.Wait()
				if len(asked) != 3 || asked[2].Sub(asked[1]) != tt.want {
					t.Errorf("requests at %v, want the third %v after the second", asked, tt.want)
				}
			})
		})
	}
}

// TestCallsFreeMemory makes calls at random: for several users, some cancelled
// sooner or later, some of which stop reading, with answers that are kept and
// changes between them. In the end, no memory may be in use, and no request and
// no answer may be remembered.
func TestCallsFreeMemory(t *testing.T) {
	t.Parallel()
	list := aLongList(codec.Newest, 3000)
	ctl := script(t, "ctl", func(nc net.Conn, r message.Header) {
		switch r.Type {
		case message.RequestJobInfo:
			nc.Write(list)
		default:
			rc(nc, r.Version, 0)
		}
	})
	budget := client.NewBudget(len(list) * 2) // sometimes too little
	c := client.New(client.Config{Controllers: []client.Address{ctl.Address}, Answers: budget})
	full := budget.Free()
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 40 {
				ctx, cancel := context.WithCancel(context.Background())
				switch rand.IntN(4) {
				case 0:
					cancel()
				case 1:
					time.AfterFunc(rand.N(20*time.Millisecond), cancel)
				}
				cred := []model.Credential{ann, {Token: "second"}, {Token: ann.Token, ActAs: "ben"}}[rand.IntN(3)]
				limit := &origin.Origin{After: time.Now().Add(-rand.N(50 * time.Millisecond)), Keep: rand.N(50 * time.Millisecond), Digest: rand.IntN(2) == 0}
				n, stop := 0, rand.IntN(6000)
				switch rand.IntN(8) {
				case 0:
					_ = c.Reconfigure(ctx, cred)
				case 1:
					_ = c.Verify(ctx, cred)
				default:
					_, _ = c.Jobs(origin.With(ctx, limit), cred, model.Query{}, func(*model.Job) error {
						if n++; n == stop {
							return errs.New(errs.Internal, "enough")
						}
						return nil
					})
				}
				cancel()
			}
		})
	}
	wait.Wait()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		series, answers := c.Remembered()
		if series == 0 && answers == 0 && budget.Free() == full {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d requests, %d answers, %d bytes", series, answers, full-budget.Free())
		}
	}
}

// TestLongAnswersAreShared checks that readers of a shared long answer, who are
// not equally fast, each get all of it, and that its memory is freed.
func TestLongAnswersAreShared(t *testing.T) {
	t.Parallel()
	const jobs = 5000
	list := aLongList(codec.Newest, jobs)
	var lists atomic.Int32
	begin := make(chan struct{})
	ctl := script(t, "ctl", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing {
			rc(nc, r.Version, 0)
			return
		}
		if lists.Add(1) == 1 {
			<-begin
		}
		nc.Write(list)
	})
	budget := client.NewBudget(4 * len(list))
	c := client.New(client.Config{Controllers: []client.Address{ctl.Address}, Answers: budget, Timeout: time.Minute, ConnectTimeout: time.Minute})
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			n := 0
			_, err := c.Jobs(context.Background(), ann, model.Query{}, func(*model.Job) error {
				if n++; i%5 == 0 && n%1000 == 0 {
					time.Sleep(time.Millisecond)
				}
				if i == 3 && n == jobs/2 {
					return errs.New(errs.Internal, "enough")
				}
				return nil
			})
			if want := jobs; (err != nil) != (i == 3) || i != 3 && n != want {
				t.Error(fmt.Sprint("reader ", i, ": ", n, " jobs, "), err)
			}
		})
	}
	time.Sleep(10 * time.Millisecond) // so that most calls wait; the test does not depend on it
	close(begin)
	wait.Wait()
	if n := lists.Load(); n >= 20 {
		t.Errorf("%d lists", n)
	}
	if !budget.Reserve(ann).Grow(len(list) * 7 / 2 * 99 / 100) {
		t.Error("memory of answers is not freed")
	}
}

// TestPanicInASharedRequest checks that a panic while a request is sent reaches
// the calls that share it. In the goroutine that sends the request, it would end
// the process.
func TestPanicInASharedRequest(t *testing.T) {
	t.Parallel()
	c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: "192.0.2.1:6817"}},
		Dial: func(context.Context, client.Address) (net.Conn, error) { panic("broken") }})
	for range 2 { // the second call does not wait for the first
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "broken\n") {
					t.Errorf("recovered %q", p)
				}
			}()
			_, _ = c.Jobs(context.Background(), ann, model.Query{}, func(*model.Job) error { return nil })
		}()
	}
}

// TestPollersWithoutMemory checks a hundred clients that poll a list for which
// there is little memory. All must get whole answers, the controller must not be
// asked for each of them, and there must be few connections.
func TestPollersWithoutMemory(t *testing.T) {
	t.Parallel()
	const jobs, clients, polls = 1000, 100, 2
	list := aLongList(codec.Newest, jobs)
	var lists, open, most atomic.Int32
	ctl := script(t, "ctl", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing {
			rc(nc, r.Version, 0)
			return
		}
		lists.Add(1)
		nc.SetDeadline(time.Now().Add(10 * time.Minute))
		if n := open.Add(1); n > most.Load() {
			most.Store(n)
		}
		nc.Write(list)
		open.Add(-1)
	})
	budget := client.NewBudget(memoryFor(t, list) * 3 / 2)
	size := budget.Free()
	c := client.New(client.Config{Controllers: []client.Address{ctl.Address}, Answers: budget, Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Minute})
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			for range polls {
				n := 0
				_, err := c.Jobs(context.Background(), ann, model.Query{}, func(*model.Job) error {
					if n++; n == jobs/2 {
						time.Sleep(time.Duration(i%10) * time.Millisecond)
					}
					return nil
				})
				if err != nil || n != jobs {
					t.Errorf("client %d: %d jobs, %v", i, n, err)
				}
			}
		})
	}
	wait.Wait()
	if n := lists.Load(); n >= clients*polls || most.Load() > client.MaxLongConns/2+1 {
		t.Errorf("%d lists, %d connections", n, most.Load())
	}
	if budget.Free() != size {
		t.Errorf("%d of %d bytes free", budget.Free(), size)
	}
	t.Logf("%d polls, %d lists, at most %d at a time", clients*polls, lists.Load(), most.Load())
}

// TestSharedPings sends many pings, and checks that no result is older than its
// call, and that calls at the same time share one ping.
func TestSharedPings(t *testing.T) {
	t.Parallel()
	var pings, underWay, most atomic.Int32
	k := script(t, "ctl", func(nc net.Conn, r message.Header) {
		pings.Add(1)
		if n := underWay.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(time.Millisecond)
		underWay.Add(-1)
		rc(nc, r.Version, 0)
	})
	c := client.New(client.Config{Controllers: []client.Address{k.Address}})
	if err := c.Verify(context.Background(), ann); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	const calls = 200
	for i := range calls {
		wait.Go(func() {
			time.Sleep(rand.N(20 * time.Millisecond))
			before := pings.Load()
			results, err := c.Ping(context.Background(), ann)
			if err != nil || len(results) != 1 || !results[0].Responding {
				t.Errorf("call %d: %v, %v", i, results, err)
			}
			if pings.Load() == before {
				t.Errorf("call %d got an old result", i)
			}
		})
	}
	wait.Wait()
	if n := pings.Load(); n >= calls || most.Load() > 1 {
		t.Errorf("%d pings reached the controller, %d at the same time", n, most.Load())
	}
}
