package auditor

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/auditor/claims"
	"schedrestd/gateway/service"
	"schedrestd/internal/keystate"
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
	l, err := newLedger(b, "keys")
	must(t, err)
	go l.run()
	return l
}

// A peer simulates a worker. It holds the auditor's client for the worker, and
// the worker's end of the channel to the auditor.
type peer struct {
	*client
	channel *ipc.Channel
}

// connectWorker connects a new worker with the given uid to the journal and the
// ledger. If perWorker is true, each worker serves only one user.
func connectWorker(t *testing.T, j *journal, l *ledger, uid uint32, perWorker bool) peer {
	t.Helper()
	auditorEnd, fd, err := ipc.Pair(ipc.Auditor, ipc.Worker)
	must(t, err)
	workerEnd, err := ipc.Open(fd, ipc.Worker, ipc.Auditor)
	must(t, err)
	t.Cleanup(func() { auditorEnd.Close(); workerEnd.Close() })
	c := service.NewClient(work.WorkerChannel{Number: uid, UID: uid, Requests: 4}, auditorEnd)
	return peer{newClient(j, l, c, perWorker, held), workerEnd}
}

// keyed returns an Intent with an Idempotency-Key.
func keyed(id uint64, key, body byte) *query.Intent {
	return &query.Intent{ID: id, Key: []query.Key{{Value: [32]byte{key}, User: [32]byte{9}, Body: [32]byte{body}}}}
}

// exchange passes a message from the worker to the client, and returns the
// client's answer.
func (p peer) exchange(t *testing.T, m ipc.Message) ipc.Message {
	t.Helper()
	if handled, err := p.handle(m); !handled || err != nil {
		t.Fatal(handled, err)
	}
	answer, err := p.channel.Receive()
	must(t, err)
	return answer.Message
}

func (p peer) sendClaim(t *testing.T, id uint64, key, body byte) *query.IntentDecision {
	t.Helper()
	d := p.exchange(t, keyed(id, key, body)).(*query.IntentDecision)
	if granted := d.Decision == query.Granted; granted != (d.State == keystate.Fresh) || d.ID != id {
		t.Errorf("%+v", d)
	}
	return d
}

// TestClaims checks the answers that two workers get for the same key.
func TestClaims(t *testing.T) {
	l := startLedger(t, new(keysFile))
	one, two := connectWorker(t, nil, l, 1, false), connectWorker(t, nil, l, 2, false)
	for _, step := range []struct {
		by    peer
		body  byte
		want  keystate.State
		after ipc.Message
	}{
		{one, 1, keystate.Fresh, nil},
		{two, 1, keystate.Running, &query.Outcome{ID: 1, State: keystate.NotDone}},
		{two, 1, keystate.Fresh, nil},
		{one, 1, keystate.Running, nil},
		{one, 2, keystate.Mismatch, nil},
	} {
		if got := step.by.sendClaim(t, 1, 7, step.body); got.State != step.want {
			t.Errorf("%+v, want %d", got, step.want)
		}
		if step.after != nil {
			one.exchange(t, step.after)
		}
	}
	if s := two.exchange(t, &query.Outcome{ID: 1, State: keystate.Answered, Answer: []byte("17")}).(*query.Settled); s.ID != 1 {
		t.Errorf("%+v", s)
	}
	if got := one.sendClaim(t, 3, 7, 1); got.State != keystate.Answered || string(got.Answer) != "17" {
		t.Errorf("%+v", got)
	}
	l.close()
}

// TestClaimsLookup checks that a worker can ask for an earlier answer without
// claiming a key that is free.
func TestClaimsLookup(t *testing.T) {
	l := startLedger(t, new(keysFile))
	w := connectWorker(t, nil, l, 1, false)
	lookup := func(key byte, want keystate.State) {
		t.Helper()
		m := keyed(9, key, 1)
		m.Key[0].Lookup = true
		if d := w.exchange(t, m).(*query.IntentDecision); d.Decision != query.Denied || d.State != want || (string(d.Answer) == "17") != (want == keystate.Answered) {
			t.Errorf("key %d: %+v, want %d", key, d, want)
		}
	}
	lookup(1, keystate.NotDone)
	w.sendClaim(t, 1, 1, 1)
	lookup(1, keystate.Running)
	w.exchange(t, &query.Outcome{ID: 1, State: keystate.Answered, Answer: []byte("17")})
	lookup(1, keystate.Answered)
	w.sendClaim(t, 2, 2, 1)
	w.exchange(t, &query.Outcome{ID: 2, State: keystate.NotDone})
	lookup(2, keystate.NotDone)
	if got := w.sendClaim(t, 3, 2, 2); got.State != keystate.Fresh {
		t.Errorf("after a lookup: %+v", got)
	}
	l.close()
}

// TestClaimsAndLog checks the lines of the audit log for changes with an
// Idempotency-Key. Only a change whose key is free has lines. If the log can't
// be written, the key must become free again before the worker is answered.
func TestClaimsAndLog(t *testing.T) {
	d := &disk{free: 1 << 20}
	j, l := testAudit(t, d, false, testTimeout), startLedger(t, new(keysFile))
	one, two := connectWorker(t, j, l, 1, false), connectWorker(t, j, l, 2, false)
	count := func(text string) int { return strings.Count(d.content(), text) }
	if got := one.sendClaim(t, 1, 1, 1); got.State != keystate.Fresh || count(`"intent"`) != 1 {
		t.Errorf("%+v with the log %s", got, d.content())
	}
	if got := two.sendClaim(t, 1, 1, 1); got.State != keystate.Running {
		t.Errorf("%+v", got)
	}
	one.exchange(t, &query.Outcome{ID: 1, Status: 200, Code: "ok", State: keystate.Answered, Answer: []byte("17")})
	await(t, "the outcome", func() bool { return count(`"outcome"`) == 1 })
	d.setFree(0)
	if got := two.sendClaim(t, 2, 1, 1); got.State != keystate.Answered || string(got.Answer) != "17" {
		t.Errorf("while the log is full: %+v", got)
	}
	for id := uint64(3); id < 5; id++ {
		if got := two.sendClaim(t, id, 2, 1); got.Decision != query.Denied || got.State != keystate.None {
			t.Errorf("while the log is full: %+v", got)
		}
	}
	d.setFree(1 << 20)
	if got := one.sendClaim(t, 5, 2, 1); got.State != keystate.Fresh {
		t.Errorf("when the log can be written again: %+v", got)
	}
	one.handleExit("it was killed")
	if got := two.sendClaim(t, 6, 2, 1); got.State != keystate.Unknown {
		t.Errorf("when the other worker was killed: %+v", got)
	}
	await(t, "the end", func() bool { return count(`"ended":"unknown","because":"it was killed"`) == 1 })
	if intents, outcomes := count(`"intent"`), count(`"outcome"`); intents != 2 || outcomes != 2 || j.counts.granted.n.Load() != 2 || j.counts.refused.n.Load() != 2 {
		t.Errorf("%d intents, %d outcomes, %+v", intents, outcomes, &j.counts)
	}
	l.close()
	j.close()
}

// TestClaimsOfTheDead checks that when a worker exits, its claims become
// unknown at once. But if the worker never got the answer to a claim, the key
// of that claim must become free, and the change must not be in the log.
func TestClaimsOfTheDead(t *testing.T) {
	b := &keysFile{hang: make(chan struct{}, 10)}
	d := &disk{free: 1 << 20}
	j, l := testAudit(t, d, false, testTimeout), startLedger(t, b)
	dead, other := connectWorker(t, j, l, 1, false), connectWorker(t, nil, l, 2, false)
	b.hang <- struct{}{}
	dead.sendClaim(t, 1, 1, 1)
	_, err := dead.handle(keyed(2, 2, 0))
	must(t, err)
	dead.handleExit("")
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
	j.close()
	if n := strings.Count(d.content(), `"intent"`); n != 1 || len(dead.open) != 0 {
		t.Errorf("%d intents, %d changes are open", n, len(dead.open))
	}
}

// TestClaimsOfUsers checks that with become_user, a worker can use neither the
// keys nor the shares of other users.
func TestClaimsOfUsers(t *testing.T) {
	l := startLedger(t, new(keysFile))
	one, two := connectWorker(t, nil, l, 1, true), connectWorker(t, nil, l, 2, true)
	if a, b := one.sendClaim(t, 1, 7, 1), two.sendClaim(t, 1, 7, 2); a.State != keystate.Fresh || b.State != keystate.Fresh {
		t.Errorf("%+v, %+v", a, b)
	}
	_, first := one.keyAndShare(&query.Key{User: [32]byte{1}})
	if _, second := one.keyAndShare(&query.Key{User: [32]byte{2}}); first != second {
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
	w := connectWorker(t, nil, l, 1, false)
	w.sendClaim(t, 1, 1, 1)
	b.set(true, nil)
	for id := range uint64(3) {
		if got := w.sendClaim(t, 10+id, 2, 1); got.State != keystate.Full {
			t.Errorf("%+v", got)
		}
	}
	w.exchange(t, &query.Outcome{ID: 1, State: keystate.Answered, Answer: []byte("1")})
	if got := w.sendClaim(t, 21, 1, 1); got.State != keystate.Running {
		t.Errorf("%+v", got)
	}
	b.set(false, nil)
	await(t, "the answer", func() bool { return w.sendClaim(t, 22, 1, 1).State == keystate.Answered })
	if got := w.sendClaim(t, 23, 2, 1); got.State != keystate.Fresh {
		t.Errorf("%+v", got)
	}
	l.close()
	if n, usableAgain := strings.Count(log.String(), "level=ERROR"), strings.Count(log.String(), "usable again"); n != 1 || usableAgain != 1 || strings.Count(log.String(), "path=keys") != 2 || !strings.Contains(log.String(), "no space left") {
		t.Errorf("%d errors, %d times usable again:\n%s", n, usableAgain, log)
	}
}

// TestClaimsIll checks that the ledger refuses claims while it can't lock its
// file, and accepts claims again afterwards.
func TestClaimsIll(t *testing.T) {
	logged(t)
	b := &keysFile{lockErr: errors.New("no locks available")}
	l := startLedger(t, b)
	w := connectWorker(t, nil, l, 1, false)
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
	hanging := startLedger(t, &keysFile{hang: hang})
	claim := func(id uint64) ipc.Message { return keyed(id, byte(id), 1) }
	outcome := func(p peer, id uint64, state keystate.State) error {
		_, err := p.handle(&query.Outcome{ID: id, State: state})
		return err
	}
	for name, send := range map[string]func(peer) error{
		"sent Intent 1 twice": func(p peer) error {
			_, _ = p.handle(claim(1))
			_, err := p.handle(claim(1))
			return err
		},
		"for more changes than it can have requests": func(p peer) (err error) {
			for id := uint64(0); err == nil && id <= uint64(p.maxOpen); id++ {
				_, err = p.handle(claim(id))
			}
			return err
		},
		"change 1, which was not granted": func(p peer) error { return outcome(p, 1, keystate.Answered) },
		"change 3, which was not granted": func(p peer) error { // the worker sends the Outcome before it gets the answer to its Intent
			_, _ = p.handle(claim(3))
			return outcome(p, 3, keystate.Answered)
		},
	} {
		if err := send(connectWorker(t, nil, hanging, 1, false)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}

	j, l := testAudit(t, &disk{free: 1 << 20}, false, testTimeout), startLedger(t, new(keysFile))
	w := connectWorker(t, j, l, 1, false)
	w.sendClaim(t, 1, 1, 1)
	w.exchange(t, &query.Intent{ID: 2})
	for id, states := range map[uint64][]keystate.State{
		1: {keystate.None, keystate.Fresh, keystate.Running, keystate.Mismatch, keystate.Full},
		2: {keystate.Answered, keystate.Unknown, keystate.NotDone},
	} {
		for _, state := range states {
			if err := outcome(w, id, state); err == nil || !strings.Contains(err.Error(), "of its key") {
				t.Errorf("change %d with state %d: %v", id, state, err)
			}
		}
	}
	if len(w.open) != 2 { // their outcome is unknown when the worker has been killed
		t.Errorf("%d changes are open", len(w.open))
	}
	if handled, _ := connectWorker(t, j, nil, 1, false).handle(claim(1)); handled {
		t.Error("a claim was handled without a file")
	}
}

// TestClaimsWithoutLog tests an auditor that has no audit log. It must handle
// only intents with an Idempotency-Key, and it must have only the counters for
// claims.
func TestClaimsWithoutLog(t *testing.T) {
	a := newAuditor(nil)
	a.ledger = startLedger(t, new(keysFile))
	c := connectWorker(t, nil, a.ledger, 1, false)
	if handled, _ := c.handle(new(query.Intent)); handled {
		t.Error("the intent was handled")
	}
	c.handleExit("")
	if len(a.Counters()) != 2 {
		t.Error(a.Counters())
	}
	a.Close()
}

// TestClaimsShareSyncs checks that claims waiting for the disk share a sync.
func TestClaimsShareSyncs(t *testing.T) {
	b := &slowFile{claimed: make(chan struct{})}
	l := startLedger(t, b)
	w := connectWorker(t, nil, l, 1, false)
	for id := range uint64(w.maxOpen) {
		_, err := w.handle(keyed(id, byte(id), 1))
		must(t, err)
	}
	close(b.claimed)
	for range w.maxOpen {
		_, err := w.channel.Receive()
		must(t, err)
	}
	l.close()
	if b.syncs > 2 { // the first claim, and all others
		t.Errorf("%d syncs for %d claims", b.syncs, w.maxOpen)
	}
	if !bytes.Contains(b.text, []byte("SIK")) {
		t.Error("nothing was written")
	}
}

// slowFile is a file whose first sync takes until all claims have been made.
type slowFile struct {
	keysFile
	claimed chan struct{}
	syncs   int
}

func (b *slowFile) Sync() error {
	b.syncs++
	<-b.claimed
	return nil
}
