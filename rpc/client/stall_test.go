package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// A lister is a controller with a long list of jobs. It counts its connections.
type lister struct {
	client.Address
	open    atomic.Int32  // open connections
	lists   atomic.Int32  // number of requested lists
	list    []byte        // the answer
	length  int           // approximate length of the answer's body
	memory  int           // memory that the answer needs
	cut     int           // number of bytes of the answer to send; 0 for all
	silence chan struct{} // if not nil, the connection stays open after a cut answer until silence is closed
}

// aLongList returns an encoded answer with n jobs, most of which can't be
// compressed.
func aLongList(v codec.Version, n int) []byte {
	list := &message.JobInfo{LastUpdate: 7}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		comment := make([]byte, 1200)
		for k := range comment {
			comment[k] = byte(1 + rng.IntN(255))
		}
		list.Jobs.List = append(list.Jobs.List, model.Job{StepID: model.StepID{JobID: uint32(i + 1)}, Name: fmt.Sprintf("job %d", i+1),
			Comment: string(comment), Detailed: true})
	}
	b, err := message.Encode(v, 0, message.ResponseJobInfo, nil, list)
	if err != nil {
		panic(err)
	}
	return b
}

// memoryFor returns how much memory of a budget an answer needs.
func memoryFor(t *testing.T, answer []byte) (n int) {
	t.Helper()
	rest := answer[4+wire.PieceSize:]
	p, _, err := wire.Collect(bytes.NewReader(rest), len(rest), func(m int) bool { n += m; return true }, func(m int) { n -= m })
	if err != nil {
		t.Fatal(err)
	}
	needed := n
	p.Drop()
	return needed
}

func newLister(t *testing.T, jobs int) *lister {
	l := &lister{list: aLongList(codec.Newest, jobs)}
	l.length, l.memory = len(l.list), memoryFor(t, l.list)
	l.Address = script(t, "ctl", l.answer).Address
	return l
}

func (l *lister) answer(nc net.Conn, r message.Header) {
	if r.Type == message.RequestPing {
		rc(nc, r.Version, 0)
		return
	}
	l.open.Add(1)
	defer l.open.Add(-1)
	l.lists.Add(1)
	if l.cut == 0 {
		nc.SetDeadline(time.Now().Add(5 * time.Minute)) // the client must close the connection, not this server
		nc.Write(l.list)
		io.Copy(io.Discard, nc) // until the other side closes
		return
	}
	nc.Write(l.list[:l.cut])
	if l.silence != nil {
		<-l.silence
	}
}

// eventually waits until holds() returns true.
func eventually(t *testing.T, condition string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
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
	const jobs = 200
	l := newLister(t, jobs)
	budget := client.NewBudget(256 << 20)
	c := client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget, Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Minute})
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
	c := client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget, Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Minute})
	_, err := c.Jobs(context.Background(), ann, model.Query{}, func(j *model.Job) error {
		used, remaining := 16<<20-budget.Free(), l.memory-l.memory*int(j.StepID.JobID)/jobs
		if used < remaining-200<<10 || used > remaining+200<<10 {
			return fmt.Errorf("at job %d %d bytes are in use, and %d to come", j.StepID.JobID, used, remaining)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMoreSlowClientsThanBudget checks a hundred clients that stop reading, with
// memory for five answers. No answer may be requested twice. Where memory ends,
// answers stay on their connections, whose number must be limited. All other
// requests must wait before they are sent. The memory in use must stay limited.
func TestMoreSlowClientsThanBudget(t *testing.T) { // not in parallel: it measures the memory of the process
	l := newLister(t, 2000)
	size := 5 * l.memory * 8 / 7 // an eighth is reserved for short answers
	budget := client.NewBudget(size)
	c := client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget, Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Minute})
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ctx, giveUp := context.WithCancel(context.Background())
	s := ask100(ctx, c)
	served := func() int32 { return s.stalled.Load() }
	eventually(t, "some stall and the others wait", func() bool { return int(served())+c.Waiting() == 100 })
	if open := l.open.Load(); open > client.MaxLongConns {
		t.Errorf("%d connections are open", open)
	}
	// Up to MaxLongRequests answers that arrive together may share the last memory, so that none of them fits.
	if n := served(); n < 5-client.MaxLongRequests+1+client.MaxLongConns || n > 6+client.MaxLongConns || n != l.lists.Load() {
		t.Errorf("%d of a hundred are served; the controller was asked %d times", n, l.lists.Load())
	}
	runtime.GC()
	runtime.ReadMemStats(&during)
	if grown := int64(during.HeapAlloc) - int64(before.HeapAlloc); grown > 100*(200<<10) { // the memory of the budget is outside the heap
		t.Errorf("%d bytes more than before", grown)
	}
	giveUp()
	eventually(t, "the others fail", func() bool { return c.Waiting() == 0 && s.failed()+int(served()) == 100 })
	s.mu.Lock()
	for _, err := range s.errs {
		if errs.KindOf(err) != errs.Unavailable && errs.KindOf(err) != errs.Timeout {
			t.Errorf("sent away with %v", err)
		}
	}
	s.mu.Unlock()
	close(s.letGo)
	s.wait.Wait()
	if budget.Free() != size {
		t.Errorf("%d of %d bytes free", budget.Free(), size)
	}
	l.lists.Store(0)
	s = ask100(context.Background(), c)
	eventually(t, "some stall and the others wait", func() bool { return int(served())+c.Waiting() == 100 })
	close(s.letGo)
	s.wait.Wait()
	if len(s.errs) > 0 || l.lists.Load() != 100 {
		t.Errorf("%d were sent away: %v; the controller was asked %d times", len(s.errs), s.errs, l.lists.Load())
	}
}

// TestNoCliff checks eight clients of different users that read slowly, for
// answers a little shorter and a little longer than the budget. All of them must
// get the whole answer, which is requested once for each.
func TestNoCliff(t *testing.T) {
	t.Parallel()
	l := newLister(t, 2000)
	for _, percent := range []int{80, 95, 105, 120} {
		budget := client.NewBudget(l.memory * 8 / 7 * 100 / percent)
		size := budget.Free()
		c := client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget, Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Minute})
		l.lists.Store(0)
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				n := 0
				cred := model.Credential{Token: fmt.Sprint(i)}
				_, err := c.Jobs(context.Background(), cred, model.Query{}, func(*model.Job) error {
					if n++; n%500 == 0 {
						time.Sleep(10 * time.Millisecond)
					}
					return nil
				})
				if err != nil || n != 2000 {
					t.Errorf("an answer of %d %% of the budget: %d jobs, %v", percent, n, err)
				}
			})
		}
		wait.Wait()
		if asked := l.lists.Load(); asked != 8 || budget.Free() != size {
			t.Errorf("an answer of %d %% of the budget: the controller was asked %d times, %d of %d bytes are free", percent, asked, budget.Free(), size)
		}
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
	synctest.Test(t, func(t *testing.T) {
		l, budget := &lister{list: aLongList(codec.Newest, 2000)}, client.NewBudget(100<<10)
		c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: "192.0.2.1:6817"}}, Answers: budget,
			Timeout: 3 * time.Second, Stall: time.Minute, Dial: dialPipe(func(nc net.Conn, f message.Frame) { l.answer(nc, f.Header) })})
		n, connections := 0, int32(0)
		_, err := c.Jobs(t.Context(), ann, model.Query{}, func(j *model.Job) error {
			if n++; j.StepID.JobID != uint32(n) || j.Name != fmt.Sprintf("job %d", n) {
				return fmt.Errorf("job %d is %+v", n, j.StepID)
			}
			if n == 10 {
				connections = l.open.Load() // the pipe has no buffer for the rest of the answer
				time.Sleep(4 * time.Second)
			}
			return nil
		})
		if err != nil || n != 2000 || connections != 1 {
			t.Errorf("%d jobs, %d connections, %v", n, connections, err)
		}
		if free := budget.Free(); free != 100<<10 {
			t.Errorf("%d bytes free", free)
		}
		if synctest.Wait(); l.open.Load() != 0 {
			t.Error("the connection is not closed")
		}
	})
}

// TestMemoryBecomesFree checks an answer that stays on its connection because
// memory is short. When there is memory again, the rest must be read, although
// the client does not read further.
func TestMemoryBecomesFree(t *testing.T) {
	t.Parallel()
	const jobs, size = 10_000, 64 << 20
	l := newLister(t, jobs)
	budget, other := client.NewBudget(size), model.Credential{Token: "other"}
	var log bytes.Buffer
	c := client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget, Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Minute,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	held := budget.Reserve(other)
	if !held.Grow(size * 7 / 8) {
		t.Fatal("no memory")
	}
	n := 0
	_, err := c.Jobs(context.Background(), ann, model.Query{}, func(*model.Job) error {
		switch n++; n {
		case 10:
			if open := l.open.Load(); open != 1 {
				t.Errorf("%d connections", open)
			}
			held.Shrink(size)
		case 200: // after the first piece
			eventually(t, "no connection is open", func() bool { return l.open.Load() == 0 })
			if n := c.Streaming(); n != 0 {
				t.Errorf("%d places in the gate", n)
			}
		}
		return nil
	})
	if err != nil || n != jobs || l.lists.Load() != 1 || budget.Free() != size {
		t.Errorf("%d jobs, %v, %d lists, %d of %d bytes free", n, err, l.lists.Load(), budget.Free(), size)
	}
	if lines := strings.Count(log.String(), "connection closed"); lines != 2 { // of the ping and of the list
		t.Errorf("%d connections closed", lines)
	}
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
				c = client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget, Timeout: 6 * time.Second, Stall: time.Hour}) // half of it for what arrives, on a busy machine
			}
			if tt.count {
				c = client.New(client.Config{Controllers: []client.Address{miscounting(t)}, Answers: budget})
			}
			n := 0
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := c.Jobs(ctx, ann, model.Query{Prompt: tt.prompt}, func(*model.Job) error { n++; return nil })
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
	list := aLongList(codec.Newest, 2000)
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
