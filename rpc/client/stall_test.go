package client_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// A lister is a controller with a long list of jobs. It counts its connections.
type lister struct {
	client.Address
	open    atomic.Int32  // open connections
	lists   atomic.Int32  // number of requested lists
	length  int           // approximate length of the answer's body
	cut     int           // number of bytes of the answer to send; 0 for all
	silence chan struct{} // if not nil, the connection stays open after a cut answer until silence is closed
}

// aLongList returns an encoded answer with n jobs.
func aLongList(v codec.Version, n int) []byte {
	list := &message.JobInfo{LastUpdate: 7}
	for i := range n {
		list.Jobs.List = append(list.Jobs.List, model.Job{StepID: model.StepID{JobID: uint32(i + 1)}, Name: fmt.Sprintf("job %d", i+1),
			Comment: strings.Repeat("x", 400), Detailed: true})
	}
	b, err := message.Encode(v, 0, message.ResponseJobInfo, nil, list)
	if err != nil {
		panic(err)
	}
	return b
}

func newLister(t *testing.T, jobs int) *lister {
	l := &lister{}
	list := aLongList(codec.V2605, jobs)
	l.length = len(list)
	l.Address = script(t, "ctl", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing {
			rc(nc, r.Version, 0)
			return
		}
		l.open.Add(1)
		defer l.open.Add(-1)
		l.lists.Add(1)
		if l.cut == 0 {
			nc.SetDeadline(time.Now().Add(5 * time.Minute)) // the client must close the connection, not this server
			nc.Write(list)
			io.Copy(io.Discard, nc) // until the other side closes
			return
		}
		nc.Write(list[:l.cut])
		if l.silence != nil {
			<-l.silence
		}
	}).Address
	return l
}

// eventually waits until holds() returns true.
func eventually(t *testing.T, condition string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come to it that %s", condition)
		}
	}
}

// A slow value is a group of clients that request the list, read a few of the
// jobs, and then stop reading until the test lets them continue.
type slow struct {
	wait    sync.WaitGroup
	letGo   chan struct{}
	stalled atomic.Int32
	mu      sync.Mutex
	errs    []error
	jobs    atomic.Int64
}

func (s *slow) failed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.errs)
}

func ask100(ctx context.Context, c *client.Client) *slow {
	s := &slow{letGo: make(chan struct{})}
	for i := range 100 {
		s.wait.Go(func() {
			n := 0
			cred := model.Credential{Token: fmt.Sprintf("%s of %d", ann.Token, i)} // different tokens, because a single credential can't use the whole budget
			_, err := c.Jobs(ctx, cred, model.Query{}, func(*model.Job) error {
				if n++; n == 3 {
					s.stalled.Add(1)
					<-s.letGo
				}
				s.jobs.Add(1)
				return nil
			})
			if err != nil {
				s.mu.Lock()
				s.errs = append(s.errs, err)
				s.mu.Unlock()
			}
		})
	}
	return s
}

// TestSlowClients checks a hundred clients that stop reading. They must not
// keep a connection to the controller busy. When they continue, they must get
// the rest of the answer.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	const jobs = 500
	l := newLister(t, jobs)
	budget := client.NewBudget(256 << 20)
	c := client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget, Timeout: time.Minute})
	s := ask100(context.Background(), c)
	eventually(t, "all stall", func() bool { return s.stalled.Load() == 100 })
	eventually(t, "no connection is open", func() bool { return l.open.Load() == 0 })
	if used := 256<<20 - budget.Free(); used == 0 || used > 100*l.length {
		t.Errorf("%d bytes are in use for a hundred answers of %d", used, l.length)
	}
	close(s.letGo)
	s.wait.Wait()
	if len(s.errs) > 0 || s.jobs.Load() != 100*jobs {
		t.Errorf("%d jobs, %v", s.jobs.Load(), s.errs)
	}
	if budget.Free() != 256<<20 {
		t.Errorf("%d bytes were not given back", 256<<20-budget.Free())
	}
}

// TestBudgetIsReturnedOnTheWay checks that the decoded part of an answer no
// longer counts towards the budget.
func TestBudgetIsReturnedOnTheWay(t *testing.T) {
	t.Parallel()
	const jobs = 2000
	l := newLister(t, jobs)
	budget := client.NewBudget(16 << 20)
	c := client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget})
	_, err := c.Jobs(context.Background(), ann, model.Query{}, func(j *model.Job) error {
		used, remaining := 16<<20-budget.Free(), l.length-l.length*int(j.StepID.JobID)/jobs
		if used < remaining-200<<10 || used > remaining+200<<10 {
			return fmt.Errorf("at job %d %d bytes are in use, and %d to come", j.StepID.JobID, used, remaining)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMoreSlowClientsThanBudget checks requests whose answers don't fit into
// the free memory. These requests must wait in a queue, without a connection. A
// request that has waited too long must fail with errs.Unavailable. The memory
// in use must stay limited.
func TestMoreSlowClientsThanBudget(t *testing.T) { // not in parallel: it measures the memory of the process
	l := newLister(t, 2000)
	size := 5 * l.length * 8 / 7 // an eighth is reserved for short answers
	budget := client.NewBudget(size)
	c := client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget, Timeout: time.Minute})
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ctx, giveUp := context.WithCancel(context.Background())
	s := ask100(ctx, c)
	eventually(t, "some stall and the others wait", func() bool { return int(s.stalled.Load())+budget.Waiting() == 100 })
	eventually(t, "no connection is open", func() bool { return l.open.Load() == 0 })
	if budget.Waiting() == 0 {
		t.Error("none was open because no request waited any more")
	}
	if n := s.stalled.Load(); n < 4 || n > 6 {
		t.Errorf("%d have room, of a hundred; it is for five", n)
	}
	runtime.GC()
	runtime.ReadMemStats(&during)
	if grown := int64(during.HeapAlloc) - int64(before.HeapAlloc); grown > int64(size)+100*(100<<10) {
		t.Errorf("%d bytes more than before, with room for %d", grown, size)
	}
	giveUp()
	eventually(t, "the others fail", func() bool { return budget.Waiting() == 0 && s.failed()+int(s.stalled.Load()) == 100 })
	s.mu.Lock()
	for _, err := range s.errs {
		if errs.KindOf(err) != errs.Unavailable {
			t.Errorf("sent away with %v", err)
		}
	}
	failed := len(s.errs)
	s.mu.Unlock()
	asked := l.lists.Load()
	if asked > 200 {
		t.Errorf("the controller was asked %d times", asked)
	}
	close(s.letGo)
	s.wait.Wait()
	if len(s.errs) != failed || budget.Free() != size {
		t.Errorf("%d failed, then %d; %d of %d bytes free", failed, len(s.errs), budget.Free(), size)
	}
	// From now on the length of the list is known, so a request is sent only
	// when there is memory for the answer.
	l.lists.Store(0)
	s = ask100(context.Background(), c)
	eventually(t, "some stall and the others wait", func() bool { return int(s.stalled.Load())+budget.Waiting() == 100 })
	if n := l.lists.Load(); n != s.stalled.Load() {
		t.Errorf("%d stall, and the controller was asked %d times", s.stalled.Load(), n)
	}
	close(s.letGo)
	s.wait.Wait()
	if len(s.errs) > 0 {
		t.Errorf("%d were sent away while there was room: %v", len(s.errs), s.errs[0])
	}
}

// longer returns a client whose memory for answers is smaller than one list.
func longer(l *lister, stall time.Duration) (*client.Client, *client.Budget) {
	budget := client.NewBudget(100 << 10)
	return client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget, Timeout: 3 * time.Second, Stall: stall}), budget
}

// TestLongerThanTheBudget checks an answer that is longer than the budget. Its
// records must be passed on as they arrive. The answer may use only one
// connection, and only the memory of a single piece. While the answer makes
// progress, the timeout of a call must not end it.
func TestLongerThanTheBudget(t *testing.T) {
	t.Parallel()
	l := newLister(t, 20_000)
	c, budget := longer(l, time.Minute)
	n, connections := 0, int32(0)
	start := time.Now()
	_, err := c.Jobs(context.Background(), ann, model.Query{}, func(j *model.Job) error {
		if n++; j.StepID.JobID != uint32(n) || j.Name != fmt.Sprintf("job %d", n) {
			return fmt.Errorf("job %d is %+v", n, j.StepID)
		}
		if n == 10 {
			connections = l.open.Load() // the rest of the answer does not fit into the network's buffers
			time.Sleep(4*time.Second - time.Since(start))
		}
		return nil
	})
	if err != nil || n != 20_000 || connections != 1 {
		t.Errorf("%d jobs, %d connections, %v", n, connections, err)
	}
	if free := budget.Free(); free != 100<<10 {
		t.Errorf("%d bytes free", free)
	}
	eventually(t, "the connection is closed", func() bool { return l.open.Load() == 0 })
}

// TestItEndsInTheMiddle checks answers that break off, stall or contain too few
// jobs. Each must result in an error and leave no memory in use. If an answer
// breaks off or stalls, none of its records may be passed on, unless the query
// sets Prompt or the answer does not fit into the budget.
func TestItEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		small   bool // the budget is smaller than the answer
		prompt  bool // the records are used at once
		stands  bool // the controller stops sending, but keeps the connection open
		count   bool // the answer is complete, but announces one job more than it contains
		kind    errs.Kind
		partial bool
	}{
		{name: "breaks off", kind: errs.BadAnswer},
		{name: "stalls", stands: true, kind: errs.Timeout},
		{name: "sends a wrong count", count: true, kind: errs.BadAnswer, partial: true},
		{name: "breaks off, longer than the budget", small: true, kind: errs.BadAnswer, partial: true},
		{name: "stalls, longer than the budget", small: true, stands: true, kind: errs.Timeout, partial: true},
		{name: "breaks off, prompt", prompt: true, kind: errs.BadAnswer, partial: true},
		{name: "stalls, prompt", prompt: true, stands: true, kind: errs.Timeout, partial: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLister(t, 2000)
			l.cut = l.length - 100_000
			if tt.stands {
				l.silence = make(chan struct{})
				defer close(l.silence)
			}
			c, budget := longer(l, 300*time.Millisecond)
			free := 100 << 10
			if !tt.small {
				free = 16 << 20
				budget = client.NewBudget(free)
				c = client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget, Timeout: time.Second})
			}
			if tt.count {
				c = client.New(client.Config{Controllers: []client.Address{miscounting(t)}, Answers: budget})
			}
			n := 0
			_, err := c.Jobs(context.Background(), ann, model.Query{Prompt: tt.prompt}, func(*model.Job) error { n++; return nil })
			if errs.KindOf(err) != tt.kind || (n > 0) != tt.partial {
				t.Errorf("%d jobs, %v", n, err)
			}
			if budget.Free() != free {
				t.Errorf("%d of %d bytes free", budget.Free(), free)
			}
		})
	}
}

// miscounting starts a controller that announces one job more than it sends.
func miscounting(t *testing.T) client.Address {
	list := aLongList(codec.V2605, 2000)
	offset := len(list) - len(bodyOf(t, list))
	binary.BigEndian.PutUint32(list[offset:], 2001)
	return script(t, "ctl", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing {
			rc(nc, r.Version, 0)
			return
		}
		nc.Write(list)
	}).Address
}

func bodyOf(t *testing.T, b []byte) []byte {
	f, err := message.ParseFrame(b[4:])
	if err != nil {
		t.Fatal(err)
	}
	return f.Body
}

// TestNobodyWantsTheRest checks that the connection to the controller is closed
// if the client disconnects, or if the function that receives the list returns
// an error.
func TestNobodyWantsTheRest(t *testing.T) {
	t.Parallel()
	for _, goes := range []bool{true, false} {
		l := newLister(t, 2000)
		l.cut, l.silence = l.length/2, make(chan struct{})
		c, _ := longer(l, time.Hour)
		ctx, cancel := context.WithCancel(context.Background())
		errStop := fmt.Errorf("enough")
		_, err := c.Jobs(ctx, ann, model.Query{}, func(j *model.Job) error {
			if j.StepID.JobID == 3 {
				cancel()
				if !goes {
					return errStop
				}
			}
			return nil
		})
		if err == nil || !goes && err != errStop {
			t.Errorf("got %v", err)
		}
		close(l.silence)
	}
}
