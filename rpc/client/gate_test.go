package client_test

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// A packer is a controller that sends a list of jobs only when the test permits
// it.
type packer struct {
	client.Address
	proceed chan struct{}
	length  int
	memory  int          // that the answer needs
	lists   atomic.Int32 // number of requested lists
	open    atomic.Int32 // lists in progress; the controller notices the end of a list later than the client does
}

// A counter holds the number of open connections and the maximum of that
// number.
type counter struct{ open, max atomic.Int32 }

type countedConn struct {
	net.Conn
	once    sync.Once
	counter *counter
}

func (c *counter) dial(ctx context.Context, a client.Address) (net.Conn, error) {
	for n, most := c.open.Add(1), c.max.Load(); n > most && !c.max.CompareAndSwap(most, n); most = c.max.Load() {
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, a.Network, a.Address)
	if err != nil {
		c.open.Add(-1)
		return nil, err
	}
	return &countedConn{Conn: nc, counter: c}, nil
}

func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.counter.open.Add(-1) })
	return err
}

func newPacker(t *testing.T, jobs int) *packer {
	p := &packer{proceed: make(chan struct{})}
	list := aLongList(codec.Newest, jobs)
	p.length = len(list)
	if p.length > wire.PieceSize {
		p.memory = memoryFor(t, list)
	}
	p.Address = script(t, "ctl", func(nc net.Conn, r message.Header) {
		nc.SetDeadline(time.Now().Add(5 * time.Minute)) // the client must close the connection, not this server
		switch r.Type {
		case message.RequestPing:
			rc(nc, r.Version, 0)
		case message.RequestSubmitBatchJob:
			answer(nc, r.Version, message.ResponseSubmitBatchJob, &message.SubmitResponse{})
		case message.RequestNodeInfoSingle:
			n := &message.NodeInfo{}
			n.Nodes.List = []model.Node{{Name: "n1"}}
			answer(nc, r.Version, message.ResponseNodeInfo, n)
		default:
			p.lists.Add(1)
			p.open.Add(1)
			defer p.open.Add(-1)
			<-p.proceed
			nc.Write(list)
			io.Copy(io.Discard, nc) // until the other side closes
		}
	}).Address
	return p
}

// TestCrowdBeforeASlowController checks a hundred clients that request a long
// list and then don't read it. Together they must make few connections to the
// controller, and must not delay short requests. A list may be requested only
// when it can be passed on.
func TestCrowdBeforeASlowController(t *testing.T) {
	t.Parallel()
	p := newPacker(t, 3000)
	if p.length < 1<<20 {
		t.Fatalf("the list has %d bytes", p.length)
	}
	size := 10 * p.memory * 8 / 7 // an eighth is reserved for short answers
	budget := client.NewBudget(size)
	var connections counter
	c := client.New(client.Config{Controllers: []client.Address{p.Address}, Answers: budget, Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Minute, Dial: connections.dial})
	ctx, giveUp := context.WithCancel(context.Background())
	s := ask100(ctx, c)
	eventually(t, "the controller is asked", func() bool { return p.open.Load() == client.MaxLongRequests })
	if err := c.Verify(context.Background(), ann); err != nil {
		t.Errorf("ping: %v", err)
	}
	if _, err := c.Submit(context.Background(), ann, &model.JobDesc{}); err != nil {
		t.Errorf("submit: %v", err)
	}
	if _, _, err := c.Node(context.Background(), ann, "n1", model.Query{}); err != nil {
		t.Errorf("a node: %v", err)
	}
	if n := connections.max.Load(); n > client.MaxLongRequests+1 { // one connection is for the short request
		t.Errorf("%d were open at a time", n)
	}
	close(p.proceed)
	eventually(t, "some stall and the others wait", func() bool { return int(s.stalled.Load())+c.Waiting() == 100 })
	if n := connections.max.Load(); n > client.MaxLongConns {
		t.Errorf("%d were open at a time", n)
	}
	if asked, n := p.lists.Load(), s.stalled.Load(); n < 10-client.MaxLongRequests+1+client.MaxLongConns || n > 11+client.MaxLongConns || asked != n {
		t.Errorf("%d of a hundred are served; there is memory for ten; the controller was asked %d times", n, asked)
	}
	giveUp()
	eventually(t, "the others fail", func() bool { return s.failed()+int(s.stalled.Load()) == 100 })
	close(s.letGo)
	s.wait.Wait()
	if budget.Free() != size {
		t.Errorf("%d bytes were not given back", size-budget.Free())
	}
}

// TestTurnDoesNotCome checks a request that waits because the controller is
// busy with other lists. The request must fail before its client gives up, and
// must leave no state behind.
func TestTurnDoesNotCome(t *testing.T) {
	t.Parallel()
	p := newPacker(t, 10)
	c := client.New(client.Config{Controllers: []client.Address{p.Address}, Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Minute})
	s := ask100(context.Background(), c)
	eventually(t, "the controller is asked", func() bool { return p.open.Load() == client.MaxLongRequests })
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := c.Jobs(ctx, ann, model.Query{}, func(*model.Job) error { return nil })
	if errs.KindOf(err) != errs.Unavailable || ctx.Err() != nil {
		t.Errorf("got %v; %v", err, ctx.Err())
	}
	close(s.letGo)
	close(p.proceed)
	s.wait.Wait()
	if len(s.errs) > 0 {
		t.Error(s.errs)
	}
}
