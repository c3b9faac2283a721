package keeper

import (
	"slices"
	"testing"
	"time"

	"schedrestd/gateway/service"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// TestCost checks that a worker gets immediate answers until it has used up one
// second's budget. Further questions must be answered at the permitted rate.
func TestCost(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		cost  float64
		count int
		each  time.Duration
	}{
		{(&pair{signer: p256()}).cost(), 5000, 200 * time.Microsecond}, {verifyCost, 25_000, 40 * time.Microsecond},
		{(&pair{signer: rsa2()}).cost(), 1000, time.Millisecond}, {(&pair{signer: rsa4()}).cost(), 125, 8 * time.Millisecond},
	} {
		paid := rate.New(limit.KeeperWork, now)
		for i := range tt.count {
			if wait := paid.Charge(now, tt.cost); wait != 0 {
				t.Fatalf("question %d of a burst waits for %s", i, wait)
			}
		}
		if wait := paid.Charge(now, tt.cost); wait != tt.each {
			t.Errorf("after the burst, a question waits for %s, want %s", wait, tt.each)
		}
	}
}

// TestQuestionsWait checks that a worker that has used up its budget has to
// wait for its next answer, for any kind of question.
func TestQuestionsWait(t *testing.T) {
	for _, question := range []ipc.Message{
		&query.Sign{ID: 7, Scheme: uint16(ecdsaSHA256), Message: hash13(32)},
		&query.Verify{ID: 7, Signed: []byte("a.b")},
	} {
		k := keeperWithKey(t)
		worker, fd, err := ipc.Pair(ipc.Worker, ipc.Keeper)
		if err != nil {
			t.Fatal(err)
		}
		c := newClient(k, service.NewClient(work.WorkerChannel{}, must(ipc.Open(fd, ipc.Keeper, ipc.Worker))))
		const owed = 200 * time.Millisecond
		start := time.Now()
		c.budget.Charge(start, limit.KeeperWork.Burst+limit.KeeperWork.PerSecond*owed.Seconds())
		go c.serve()
		if err := worker.Send(question); err != nil {
			t.Fatal(err)
		}
		if _, err := worker.Receive(); err != nil {
			t.Fatal(err)
		}
		if elapsed := time.Since(start); elapsed < owed || k.counts.slowed.Load() != 1 {
			t.Errorf("%s is answered after %s, %d waited", ipc.KindOf(question), elapsed, k.counts.slowed.Load())
		}
		worker.Close()
	}
}

// TestEachQuestionCosts checks the price of each message that a worker can send to the
// keeper: nothing is free.
func TestEachQuestionCosts(t *testing.T) {
	costs := map[string]float64{}
	for _, tt := range []struct {
		question ipc.Message
		cost     float64
	}{
		{&query.Sign{Scheme: uint16(ecdsaSHA256), Message: hash13(32)}, signCost},
		{&query.Verify{Signed: []byte("a.b")}, verifyCost},
		{&query.Exchange{Signed: []byte("a.b")}, exchangeCost},
		{&query.VouchFor{Signed: []byte("a.b")}, exchangeCost},
		{&query.StampPart{Type: 1, Body: []byte("a")}, stampPartCost},
		{&query.Stamp{Type: 1, Signed: []byte("a.b"), Body: []byte("a")}, exchangeCost + stampPartCost},
		{&query.ManageTokens{Signed: []byte("a.b")}, exchangeCost},
		{&query.AskDigests{}, verifyCost},
	} {
		kind := ipc.KindOf(tt.question)
		costs[kind.String()] = tt.cost
		for _, saved := range []float64{tt.cost, tt.cost - 0.5} {
			k := keeperWithKey(t)
			worker, fd, err := ipc.Pair(ipc.Worker, ipc.Keeper)
			if err != nil {
				t.Fatal(err)
			}
			defer worker.Close()
			c := newClient(k, service.NewClient(work.WorkerChannel{}, must(ipc.Open(fd, ipc.Keeper, ipc.Worker))))
			c.budget = rate.New(limit.KeeperWork.Of(saved, 1000), time.Now())
			if handled, err := c.handle(tt.question); !handled || err != nil {
				t.Fatalf("%s: handled %v, %v", kind, handled, err)
			}
			if waited := k.counts.slowed.Load() == 1; waited != (saved < tt.cost) {
				t.Errorf("%s with a budget of %v: waited %v", kind, saved, waited)
			}
		}
	}
	for _, row := range query.Rows {
		sent := slices.ContainsFunc(row.Routes, func(r ipc.Route) bool { return r.From&ipc.Worker != 0 && r.To&ipc.Keeper != 0 })
		if sent && costs[row.Kind.String()] == 0 {
			t.Errorf("%s has no price here", row.Kind)
		}
	}
}
