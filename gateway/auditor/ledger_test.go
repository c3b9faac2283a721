package auditor

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/auditor/claims"
	"schedrestd/gateway/service"
	"schedrestd/internal/keystate"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// keysFile simulates a file of claims whose disk is full, or whose lock fails
// or hangs.
type keysFile struct {
	mu      sync.Mutex
	text    []byte
	full    bool
	lockErr error
	hang    chan struct{}
}

func (b *keysFile) ReadAt(p []byte, at int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := copy(p, b.text[min(int(at), len(b.text)):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (b *keysFile) WriteAt(p []byte, at int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if grow := int(at) + len(p) - len(b.text); grow > 0 {
		b.text = append(b.text, make([]byte, grow)...)
	}
	if b.full {
		return 0, unix.ENOSPC
	}
	return copy(b.text[at:], p), nil
}

func (b *keysFile) Lock() error {
	if b.hang != nil {
		<-b.hang
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lockErr
}
func (b *keysFile) Sync() error      { return nil }
func (b *keysFile) Unlock()          {}
func (b *keysFile) IsOnlyUser() bool { return false }

func (b *keysFile) set(full bool, lockErr error) {
	b.mu.Lock()
	b.full, b.lockErr = full, lockErr
	b.mu.Unlock()
}

// startLedger returns a ledger that keeps its claims in b.
func startLedger(t *testing.T, b claims.File) *ledger {
	t.Helper()
	l, err := newLedger(b)
	must(t, err)
	go l.run()
	return l
}

// A peer simulates a worker. It holds the auditor's claimer for the worker, and
// the worker's end of the channel to the auditor.
type peer struct {
	*claimer
	channel *ipc.Channel
}

// connectWorker connects a new worker with the given uid to the ledger. If
// perWorker is true, each worker serves only one user.
func connectWorker(t *testing.T, l *ledger, uid uint32, perWorker bool) peer {
	t.Helper()
	auditorEnd, fd, err := ipc.Pair(ipc.Auditor, ipc.Worker)
	must(t, err)
	workerEnd, err := ipc.Open(fd, ipc.Worker, ipc.Auditor)
	must(t, err)
	t.Cleanup(func() { auditorEnd.Close(); workerEnd.Close() })
	return peer{newClaimer(l, service.NewClient(work.WorkerChannel{Number: uid, UID: uid, Requests: 4}, auditorEnd), perWorker), workerEnd}
}

// exchange passes a message from the worker to the claimer, and returns the
// claimer's answer.
func (p peer) exchange(t *testing.T, m ipc.Message) ipc.Message {
	t.Helper()
	if handled, err := p.handle(m); !handled || err != nil {
		t.Fatal(handled, err)
	}
	answer, err := p.channel.Receive()
	must(t, err)
	return answer.Message
}

func (p peer) sendClaim(t *testing.T, id uint64, key, body byte) *query.Claimed {
	t.Helper()
	return p.exchange(t, &query.Claim{ID: id, Key: [32]byte{key}, User: [32]byte{9}, Body: [32]byte{body}}).(*query.Claimed)
}

// TestClaims checks the answers that two workers get for the same key.
func TestClaims(t *testing.T) {
	l := startLedger(t, new(keysFile))
	one, two := connectWorker(t, l, 1, false), connectWorker(t, l, 2, false)
	for _, step := range []struct {
		by    peer
		body  byte
		want  keystate.State
		after ipc.Message
	}{
		{one, 1, keystate.Fresh, nil},
		{two, 1, keystate.Running, &query.Settle{ID: 100, Claim: 1, State: keystate.NotDone}},
		{two, 1, keystate.Fresh, nil},
		{one, 1, keystate.Running, nil},
		{one, 2, keystate.Mismatch, nil},
	} {
		id := uint64(1)
		if got := step.by.sendClaim(t, id, 7, step.body); got.State != step.want || got.ID != id {
			t.Errorf("%+v, want %d", got, step.want)
		}
		if step.after != nil {
			one.exchange(t, step.after)
		}
	}
	if s := two.exchange(t, &query.Settle{ID: 5, Claim: 1, State: keystate.Answered, Answer: []byte("17")}).(*query.Settled); s.ID != 5 {
		t.Errorf("%+v", s)
	}
	if got := one.sendClaim(t, 3, 7, 1); got.State != keystate.Answered || string(got.Answer) != "17" {
		t.Errorf("%+v", got)
	}
	l.close()
}

// TestClaimsOfTheDead checks that when a worker exits, its claims become
// unknown at once. But if the worker never got the answer to a claim, the key
// of that claim must become free.
func TestClaimsOfTheDead(t *testing.T) {
	b := &keysFile{hang: make(chan struct{}, 10)}
	l := startLedger(t, b)
	dead, other := connectWorker(t, l, 1, false), connectWorker(t, l, 2, false)
	b.hang <- struct{}{}
	dead.sendClaim(t, 1, 1, 1)
	_, err := dead.handle(&query.Claim{ID: 2, Key: [32]byte{2}, User: [32]byte{9}})
	must(t, err)
	dead.handleExit()
	close(b.hang)
	if got := other.sendClaim(t, 1, 1, 1); got.State != keystate.Unknown {
		t.Errorf("%+v", got)
	}
	for got := other.sendClaim(t, 2, 2, 0); got.State != keystate.Fresh; got = other.sendClaim(t, 2, 2, 0) {
		if got.State != keystate.Running { // the ledger has processed the dead worker's claim, but perhaps not yet its end
			t.Fatalf("%+v", got)
		}
	}
	l.close()
}

// TestClaimsOfUsers checks that with become_user, a worker can use neither the
// keys nor the shares of other users.
func TestClaimsOfUsers(t *testing.T) {
	l := startLedger(t, new(keysFile))
	one, two := connectWorker(t, l, 1, true), connectWorker(t, l, 2, true)
	if a, b := one.sendClaim(t, 1, 7, 1), two.sendClaim(t, 1, 7, 2); a.State != keystate.Fresh || b.State != keystate.Fresh {
		t.Errorf("%+v, %+v", a, b)
	}
	_, first := one.keyAndShare(&query.Claim{User: [32]byte{1}})
	if _, second := one.keyAndShare(&query.Claim{User: [32]byte{2}}); first != second {
		t.Error("the user has two shares")
	}
	l.close()
}

// TestClaimsDiskFull checks that claims are refused while the disk is full.
// When there is space again, the answer for an earlier claim must be written.
// The log must show that the file became unusable, and that it became usable
// again.
func TestClaimsDiskFull(t *testing.T) {
	log := logged(t)
	b := new(keysFile)
	l := startLedger(t, b)
	w := connectWorker(t, l, 1, false)
	w.sendClaim(t, 1, 1, 1)
	b.set(true, nil)
	for id := range uint64(3) {
		if got := w.sendClaim(t, 10+id, 2, 1); got.State != keystate.Full {
			t.Errorf("%+v", got)
		}
	}
	w.exchange(t, &query.Settle{ID: 20, Claim: 1, State: keystate.Answered, Answer: []byte("1")})
	if got := w.sendClaim(t, 21, 1, 1); got.State != keystate.Running {
		t.Errorf("%+v", got)
	}
	b.set(false, nil)
	await(t, "the answer", func() bool { return w.sendClaim(t, 22, 1, 1).State == keystate.Answered })
	if got := w.sendClaim(t, 23, 2, 1); got.State != keystate.Fresh {
		t.Errorf("%+v", got)
	}
	l.close()
	if n, usableAgain := strings.Count(log.String(), "level=ERROR"), strings.Count(log.String(), "usable again"); n != 1 || usableAgain != 1 || !strings.Contains(log.String(), "no space left") {
		t.Errorf("%d errors, %d times usable again:\n%s", n, usableAgain, log)
	}
}

// TestClaimsIll checks that the ledger refuses claims while it can't lock its
// file, and accepts claims again afterwards.
func TestClaimsIll(t *testing.T) {
	logged(t)
	b := &keysFile{lockErr: errors.New("no locks available")}
	l := startLedger(t, b)
	w := connectWorker(t, l, 1, false)
	for id := range uint64(3) {
		if got := w.sendClaim(t, id, 2, 1); got.State != keystate.Full {
			t.Errorf("%+v", got)
		}
	}
	b.set(false, nil)
	await(t, "a claim", func() bool { return w.sendClaim(t, 9, 2, 1).State == keystate.Fresh })
	l.close()
}

// TestClaimsLiars checks which messages cause a worker to be reported.
func TestClaimsLiars(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	l := startLedger(t, &keysFile{hang: hang})
	claim := func(id uint64) ipc.Message { return &query.Claim{ID: id} }
	for name, send := range map[string]func(peer) error{
		"sent Claim 1 twice": func(p peer) error {
			_, _ = p.handle(claim(1))
			_, err := p.handle(claim(1))
			return err
		},
		"for more requests than it can have": func(p peer) (err error) {
			for id := uint64(0); err == nil && id <= uint64(p.maxOpen); id++ {
				_, err = p.handle(claim(id))
			}
			return err
		},
		"too often": func(p peer) (err error) {
			p.quota, p.excess = rate.New(rate.Row{Burst: 1}, time.Now()), rate.New(rate.Row{Burst: 2}, time.Now())
			for id := uint64(0); err == nil && id < 9; id++ {
				_, err = p.handle(claim(id))
			}
			return err
		},
		"which it does not have": func(p peer) error {
			_, err := p.handle(&query.Settle{Claim: 1, State: keystate.Answered})
			return err
		},
		"claim 3, which it does not have": func(p peer) error { // the worker sends Settle before it gets the answer to its Claim
			_, _ = p.handle(claim(3))
			_, err := p.handle(&query.Settle{Claim: 3, State: keystate.Answered})
			return err
		},
	} {
		if err := send(connectWorker(t, l, 1, false)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
	if handled, _ := connectWorker(t, nil, 1, false).handle(claim(1)); handled {
		t.Error("a claim was handled without a file")
	}
}

// TestClaimsWithoutLog tests an auditor that has no audit log. It must not
// handle intents, and it must have only the counters for claims.
func TestClaimsWithoutLog(t *testing.T) {
	c := newClient(nil, newTestClient(t, 1), nil)
	if handled, _ := c.handle(new(query.Intent)); handled {
		t.Error("the intent was handled")
	}
	c.handleExit("")
	a := newAuditor(nil)
	if a.ledger = startLedger(t, new(keysFile)); len(a.Counters()) != 2 {
		t.Error(a.Counters())
	}
	a.Close()
}

// TestClaimsShareSyncs checks that claims waiting for the disk share a sync.
func TestClaimsShareSyncs(t *testing.T) {
	b := &slowFile{}
	l := startLedger(t, b)
	w := connectWorker(t, l, 1, false)
	for id := range uint64(w.maxOpen) {
		_, err := w.handle(&query.Claim{ID: id, Key: [32]byte{byte(id)}})
		must(t, err)
	}
	for range w.maxOpen {
		_, err := w.channel.Receive()
		must(t, err)
	}
	l.close()
	if b.syncs > w.maxOpen/2 {
		t.Errorf("%d syncs for %d claims", b.syncs, w.maxOpen)
	}
	if !bytes.Contains(b.text, []byte("SIK")) {
		t.Error("nothing was written")
	}
}

// slowFile is a file whose syncs take a moment.
type slowFile struct {
	keysFile
	syncs int
}

func (b *slowFile) Sync() error {
	b.syncs++
	time.Sleep(20 * time.Millisecond)
	return nil
}
