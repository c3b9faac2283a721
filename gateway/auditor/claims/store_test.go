package claims

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/keystate"
	"schedrestd/internal/limit"
)

// A memory is an in-memory File whose writes can fail.
type memory struct {
	text     []byte
	space    int // bytes that can still be written; negative: any number
	syncErr  error
	onlyUser bool
	locked   bool
}

func (m *memory) ReadAt(b []byte, at int64) (int, error) {
	if at >= int64(len(m.text)) {
		return 0, io.EOF
	}
	n := copy(b, m.text[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	n := len(b)
	if m.space >= 0 {
		n = min(n, m.space)
		m.space -= n
	}
	if grow := int(at) + n - len(m.text); grow > 0 {
		m.text = append(m.text, make([]byte, grow)...)
	}
	copy(m.text[at:], b[:n])
	if n < len(b) {
		return n, unix.ENOSPC
	}
	return n, nil
}

func (m *memory) Sync() error { return m.syncErr }
func (m *memory) Lock() error {
	if m.locked {
		return errors.New("locked twice")
	}
	m.locked = true
	return nil
}
func (m *memory) Unlock()          { m.locked = false }
func (m *memory) IsOnlyUser() bool { return m.onlyUser }

// clock is a virtual clock. It shows the time now plus wrong.
type clock struct {
	now   time.Time
	wrong time.Duration
}

func (c *clock) Wall() time.Time        { return c.now.Add(c.wrong) }
func (c *clock) Elapsed() time.Duration { return c.now.Sub(startTime) }

var startTime = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func store(f File, c *clock, process byte) *Store { return New(f, [8]byte{process}, c) }

func hash(text string) [32]byte { return sha256.Sum256([]byte(text)) }

// claimKey claims a key between Begin and Commit.
func claimKey(t *testing.T, s *Store, key, user, body string) (uint64, keystate.State, string) {
	t.Helper()
	must(t, s.Begin())
	number, state, answer, err := s.Claim(hash(user+key), hash(user), hash(body), 0, false)
	must(t, err)
	must(t, s.Commit())
	return number, state, string(answer)
}

// wantClaim claims a key, and fails the test unless it gets the given state and
// answer.
func wantClaim(t *testing.T, s *Store, key, user, body string, state keystate.State, answer string) uint64 {
	t.Helper()
	number, got, text := claimKey(t, s, key, user, body)
	if got != state || text != answer {
		t.Fatalf("%s of %s: state %d, %q; want %d, %q", key, user, got, text, state, answer)
	}
	return number
}

func settle(t *testing.T, s *Store, number uint64, state keystate.State, answer string) {
	t.Helper()
	must(t, s.Begin())
	must(t, s.Settle(number, state, []byte(answer)))
	must(t, s.Commit())
}

// TestClaim checks the states of a key from the claim to the answer, as three
// processes see them: the process that claimed the key, another process, and a
// process that reads the file later.
func TestClaim(t *testing.T) {
	f, c := &memory{space: -1}, &clock{now: startTime}
	s, other := store(f, c, 1), store(f, c, 2)
	a := wantClaim(t, s, "k", "alice", "body", keystate.Fresh, "")
	wantClaim(t, s, "k", "alice", "body", keystate.Running, "")
	wantClaim(t, other, "k", "alice", "body", keystate.Running, "")
	wantClaim(t, s, "k", "alice", "another", keystate.Mismatch, "")
	b := wantClaim(t, other, "k", "bob", "body", keystate.Fresh, "")
	settle(t, s, a, keystate.Answered, "job 17")
	settle(t, other, b, keystate.NotDone, "")
	for _, reader := range []*Store{s, other, store(f, c, 3)} {
		wantClaim(t, reader, "k", "alice", "body", keystate.Answered, "job 17")
		wantClaim(t, reader, "k", "alice", "another", keystate.Mismatch, "")
	}
	b = wantClaim(t, s, "k", "bob", "corrected", keystate.Fresh, "")
	settle(t, s, b, keystate.Unknown, "")
	wantClaim(t, other, "k", "bob", "corrected", keystate.Unknown, "")
	settle(t, s, b, keystate.Answered, "settled twice")
	settle(t, other, a, keystate.Answered, "settled by another process")
	wantClaim(t, other, "k", "bob", "corrected", keystate.Unknown, "")
	wantClaim(t, other, "k", "alice", "body", keystate.Answered, "job 17")
}

// TestSearched checks that a key of unknown outcome is free for a worker that finds the
// outcome out, and for no other, and that no other state is.
func TestSearched(t *testing.T) {
	f, c := &memory{space: -1}, &clock{now: startTime}
	s := store(f, c, 1)
	search := func(s *Store, body string) (uint64, keystate.State) {
		t.Helper()
		must(t, s.Begin())
		number, state, _, err := s.Claim(hash("alicek"), hash("alice"), hash(body), 0, true)
		must(t, err)
		must(t, s.Commit())
		return number, state
	}
	want := func(s *Store, body string, want keystate.State) uint64 {
		t.Helper()
		number, state := search(s, body)
		if state != want {
			t.Fatalf("%s: state %d, want %d", body, state, want)
		}
		return number
	}
	settle(t, s, want(s, "body", keystate.Fresh), keystate.Unknown, "")
	wantClaim(t, s, "k", "alice", "body", keystate.Unknown, "")
	want(s, "another", keystate.Mismatch)
	f.space = 0
	must(t, s.Begin())
	if _, state, _, err := s.Claim(hash("alicek"), hash("alice"), hash("body"), 0, true); err == nil || state != keystate.Full {
		t.Fatalf("a full disk: state %d, %v", state, err)
	}
	_ = s.Commit()
	f.space = -1
	wantClaim(t, store(f, c, 2), "k", "alice", "body", keystate.Unknown, "")
	number := want(s, "body", keystate.Fresh)
	want(s, "body", keystate.Running)
	want(store(f, c, 3), "body", keystate.Running) // of a process that may still live
	settle(t, s, number, keystate.NotDone, "")     // nothing was found out
	c.now = startTime.Add(searchTime - 1)
	number = want(s, "body", keystate.Fresh)
	settle(t, s, number, keystate.Unknown, "")
	c.now = startTime.Add(searchTime)
	want(s, "body", keystate.Unknown) // the controller may have forgotten the job of the first claim
	c.now = startTime.Add(lifetime)
	settle(t, s, want(s, "body", keystate.Fresh), keystate.Answered, "17")
	want(s, "body", keystate.Answered)
}

// TestExpires checks that a key is kept for its lifetime and no longer.
func TestExpires(t *testing.T) {
	f, c := &memory{space: -1}, &clock{now: startTime}
	s := store(f, c, 1)
	settle(t, s, wantClaim(t, s, "k", "alice", "body", keystate.Fresh, ""), keystate.Answered, "17")
	c.now = startTime.Add(lifetime - 1)
	wantClaim(t, s, "k", "alice", "body", keystate.Answered, "17")
	wantClaim(t, store(f, c, 2), "k", "alice", "body", keystate.Answered, "17")
	c.now = startTime.Add(lifetime)
	reopened := store(f, c, 3)
	wantClaim(t, reopened, "k", "alice", "other", keystate.Fresh, "")
	c.now = startTime.Add(lifetime + renewal)
	wantClaim(t, s, "k", "alice", "other", keystate.Unknown, "")
	if len(s.live) != 1 || len(s.byKey) != 1 || s.users[hash("alice")] != 1 {
		t.Errorf("%d claims, %d keys", len(s.live), len(s.byKey))
	}
}

// TestWrongClock checks that no process forgets a key because the clock is
// wrong for a moment, because it was wrong when the key was claimed, or because
// it is slow when the process starts.
func TestWrongClock(t *testing.T) {
	const hour, year = time.Hour, 365 * 24 * time.Hour
	for _, tt := range []struct {
		name                   string
		claimed, now, reopened time.Duration // error of the clock at these times
	}{
		{"a day fast for a moment", 0, 25 * hour, 0},
		{"a day slow for a moment", 0, -25 * hour, 0},
		{"set back", 25 * hour, 0, 0},
		{"set back by years", 60 * year, 0, 0},
		{"slow after a boot", 0, 0, -25 * hour},
		{"at 1970 after a boot", 0, 0, -56 * year},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, c := &memory{space: -1}, &clock{now: startTime}
			other := store(f, c, 1) // it has read the file before the clock is wrong
			settle(t, other, wantClaim(t, other, "first", "alice", "body", keystate.Fresh, ""), keystate.Answered, "1")
			c.wrong = tt.claimed
			s := store(f, c, 2)
			number := uint64(0)
			if tt.claimed == 0 {
				wantClaim(t, s, "first", "alice", "body", keystate.Answered, "1")
			}
			number = wantClaim(t, s, "second", "alice", "body", keystate.Fresh, "")
			settle(t, s, number, keystate.Answered, "2")
			c.wrong = tt.now
			for _, r := range []*Store{s, other} {
				wantClaim(t, r, "second", "alice", "body", keystate.Answered, "2")
				wantClaim(t, r, "during "+fmt.Sprint(r.process), "alice", "body", keystate.Fresh, "")
			}
			c.wrong, c.now = tt.reopened, c.now.Add(lifetime-time.Minute)
			for _, r := range []*Store{s, other, store(f, c, 3)} {
				wantClaim(t, r, "second", "alice", "body", keystate.Answered, "2")
			}
			wantClaim(t, other, "first", "alice", "body", keystate.Answered, "1")
		})
	}
}

// TestRenewed checks that requests with the same key share a slot for a while
// if they are not carried out. All processes must remember the last of these
// requests for the full Lifetime after it arrived.
func TestRenewed(t *testing.T) {
	f, c := &memory{space: -1}, &clock{now: startTime}
	s, other := store(f, c, 1), store(f, c, 2)
	var last uint64
	for i := range 60 {
		current := []*Store{s, other}[i%2]
		last = wantClaim(t, current, "k", "alice", fmt.Sprint(i), keystate.Fresh, "")
		if i < 59 {
			settle(t, current, last, keystate.NotDone, "")
		}
		c.now = c.now.Add(renewal / 60)
	}
	if last != 1 || s.Live() != 1 || s.users[hash("alice")] != 1 {
		t.Errorf("%d places, %d claims", last, s.Live())
	}
	wantClaim(t, s, "k", "alice", "59", keystate.Running, "")
	settle(t, other, last, keystate.Answered, "17")
	for _, reader := range []*Store{s, other, store(f, c, 3)} {
		wantClaim(t, reader, "k", "alice", "58", keystate.Mismatch, "")
		c.now = startTime.Add(lifetime + renewal/2)
		wantClaim(t, reader, "k", "alice", "59", keystate.Answered, "17")
		c.now = startTime.Add(renewal)
	}
	number := wantClaim(t, s, "late", "alice", "1", keystate.Fresh, "")
	settle(t, s, number, keystate.NotDone, "")
	c.now = c.now.Add(renewal)
	if next := wantClaim(t, other, "late", "alice", "2", keystate.Fresh, ""); next != number+1 {
		t.Errorf("place %d, then %d", number, next)
	}
}

// TestRenewedNotSynced tests a renewed claim that did not reach the disk. Its
// key can be claimed again, and its slot stays in use.
func TestRenewedNotSynced(t *testing.T) {
	f, c := &memory{space: -1}, &clock{now: startTime}
	s := store(f, c, 1)
	settle(t, s, wantClaim(t, s, "k", "alice", "1", keystate.Fresh, ""), keystate.NotDone, "")
	must(t, s.Begin())
	_, state, _, err := s.Claim(hash("alicek"), hash("alice"), hash("2"), 0, false)
	if must(t, err); state != keystate.Fresh {
		t.Fatal(state)
	}
	f.syncErr = unix.EIO
	if err := s.Commit(); err != unix.EIO || len(s.open) != 0 || s.Live() != 1 {
		t.Errorf("%v, %v, %d claims", err, s.open, s.Live())
	}
	f.syncErr = nil
	wantClaim(t, store(f, c, 2), "k", "alice", "3", keystate.Fresh, "")
}

// TestForsaken tests claims that are never settled. If the process that made a
// claim has certainly exited, the claim must become unknown at once. If the
// process may still be running, the claim must become unknown after a while.
func TestForsaken(t *testing.T) {
	f, c := &memory{space: -1}, &clock{now: startTime}
	wantClaim(t, store(f, c, 1), "k", "alice", "body", keystate.Fresh, "")
	c.now = startTime.Add(time.Second)
	other := store(f, c, 2)
	wantClaim(t, other, "k", "alice", "body", keystate.Running, "")
	f.onlyUser = true
	wantClaim(t, store(f, c, 3), "k", "alice", "body", keystate.Unknown, "")
	c.now = startTime.Add(foreignLimit)
	wantClaim(t, other, "k", "alice", "body", keystate.Unknown, "")
}

// TestTorn interrupts the write of a claim, or of its end record, at each byte.
// This must not damage any other claim, and no key may get the answer of
// another key.
func TestTorn(t *testing.T) {
	whole, c := &memory{space: -1}, &clock{now: startTime}
	s := store(whole, c, 1)
	settle(t, s, wantClaim(t, s, "first", "alice", "body", keystate.Fresh, ""), keystate.Answered, "1")
	before := bytes.Clone(whole.text)
	number := wantClaim(t, s, "second", "alice", "body", keystate.Fresh, "")
	claimed := bytes.Clone(whole.text)
	settle(t, s, number, keystate.Answered, "2")
	settled := bytes.Clone(whole.text)
	for cut := len(before); cut < len(before)+claimSize; cut++ {
		f := &memory{text: append(bytes.Clone(before), claimed[len(before):cut]...), space: -1}
		reopened := store(f, c, 2)
		wantClaim(t, reopened, "first", "alice", "body", keystate.Answered, "1")
		wantClaim(t, reopened, "second", "alice", "body", keystate.Fresh, "")
	}
	at := len(before) + endOffset
	for cut := at; cut < at+endSize+1; cut++ {
		f := &memory{text: append(bytes.Clone(settled[:cut]), claimed[cut:]...), space: -1}
		wantClaim(t, store(f, c, 2), "second", "alice", "body", keystate.Running, "")
	}
	for flip, old := range settled {
		if old == 0 && flip%32 > 0 {
			continue
		}
		f := &memory{text: bytes.Clone(settled), space: -1, onlyUser: true}
		f.text[flip] ^= 4
		for _, running := range []bool{false, true} { // a process that has read the file earlier, or one that reads it later
			r := store(&memory{text: bytes.Clone(settled), space: -1}, c, 4)
			if running {
				must(t, r.Begin())
				must(t, r.Commit())
			}
			r.file = f
			for _, key := range []string{"first", "second"} {
				if _, state, _ := claimKey(t, r, key, "alice", "body"); state == keystate.Fresh {
					t.Fatalf("byte %d: %s has state %d", flip, key, state)
				}
			}
		}
		reopened := store(f, c, 2)
		if err := reopened.Begin(); err != nil {
			continue // this byte is the version of the format
		}
		must(t, reopened.Commit())
		for key, answer := range map[string]string{"first": "1", "second": "2"} {
			if _, state, got := claimKey(t, reopened, key, "alice", "body"); state == keystate.Answered && got != answer || state == keystate.Running {
				t.Fatalf("byte %d: %s has state %d, %q", flip, key, state, got)
			}
		}
	}
}

// TestNewer checks that a file in a later version of the format is not used.
func TestNewer(t *testing.T) {
	f, c := &memory{space: -1}, &clock{now: startTime}
	wantClaim(t, store(f, c, 1), "k", "alice", "body", keystate.Fresh, "")
	f.text[slotSize+3] = 2
	if err := store(f, c, 2).Begin(); err == nil || f.locked {
		t.Errorf("%v, locked: %v", err, f.locked)
	}
}

// TestDiskFull checks that a claim that can't be written is refused and leaves
// no trace. Earlier claims can still be settled, because the space for their
// end records is already reserved.
func TestDiskFull(t *testing.T) {
	for space := 0; space < slotSize; space += 7 {
		f, c := &memory{space: -1}, &clock{now: startTime}
		s := store(f, c, 1)
		number := wantClaim(t, s, "first", "alice", "body", keystate.Fresh, "")
		f.space = space
		must(t, s.Begin())
		if _, state, _, err := s.Claim(hash("alicesecond"), hash("alice"), hash("body"), 0, false); space < slotSize-endOffset+claimSize && (!errors.Is(err, unix.ENOSPC) || state != keystate.Full) {
			t.Fatalf("bytes left %d: state %d, %v", space, state, err)
		}
		must(t, s.Commit())
		f.space = -1
		settle(t, s, number, keystate.Answered, "1")
		reopened := store(f, c, 2)
		wantClaim(t, reopened, "first", "alice", "body", keystate.Answered, "1")
		if space < slotSize-endOffset+claimSize {
			wantClaim(t, reopened, "second", "alice", "body", keystate.Fresh, "")
			wantClaim(t, s, "second", "alice", "body", keystate.Running, "")
		}
	}
}

// TestNotSynced checks that if a sync fails, the claims made since Begin are
// withdrawn, and earlier claims are kept.
func TestNotSynced(t *testing.T) {
	f, c := &memory{space: -1}, &clock{now: startTime}
	s := store(f, c, 1)
	wantClaim(t, s, "first", "alice", "body", keystate.Fresh, "")
	must(t, s.Begin())
	for _, key := range []string{"2", "3"} {
		_, state, _, err := s.Claim(hash("alice"+key), hash("alice"), hash("body"), 0, false)
		if must(t, err); state != keystate.Fresh {
			t.Fatal(state)
		}
	}
	f.syncErr = unix.EIO
	if err := s.Commit(); err != unix.EIO || f.locked {
		t.Fatal(err)
	}
	f.syncErr = nil
	if len(s.live) != 1 || s.users[hash("alice")] != 1 || len(s.open) != 1 {
		t.Errorf("%d claims, %v, %v", len(s.live), s.users, s.open)
	}
	wantClaim(t, store(f, c, 2), "3", "alice", "body", keystate.Fresh, "")
	wantClaim(t, s, "3", "alice", "body", keystate.Running, "")
	wantClaim(t, s, "2", "alice", "body", keystate.Fresh, "")
	wantClaim(t, s, "first", "alice", "body", keystate.Running, "")
}

// TestBounds checks that a user can occupy only part of the file. Many users
// together, or a worker that never stops claiming keys, must also leave slots
// for others. When the claims expire, all slots must be free again.
func TestBounds(t *testing.T) {
	if Slots != limit.IdempotencyKeys.Total {
		t.Errorf("the file has %d slots, the row %d", Slots, limit.IdempotencyKeys.Total)
	}
	f, c := &memory{space: -1}, &clock{now: startTime}
	s := store(f, c, 1)
	fill := func(user string, workerClaims func(mine int) int) (n int) {
		must(t, s.Begin())
		defer func() { must(t, s.Commit()) }()
		for ; ; n++ {
			_, state, _, err := s.Claim(hash(fmt.Sprint(user, n)), hash(user), [32]byte{}, workerClaims(n), false)
			must(t, err)
			if state == keystate.Full {
				return n
			}
		}
	}
	noClaims := func(int) int { return 0 }
	total := 0
	for user := range 7 {
		n := fill(fmt.Sprint("user", user), noClaims)
		if total += n; n != limit.IdempotencyKeys.Share {
			t.Errorf("user %d has %d of %d", user, n, limit.IdempotencyKeys.Share)
		}
	}
	if n := fill("eighth", noClaims); n != limit.IdempotencyKeys.Share/2 {
		t.Errorf("the eighth user has %d", n)
	} else {
		total += n
	}
	claimed := 0
	if n := fill("captured", func(int) int { claimed++; return claimed - 1 }); n != (Slots-total)/2 {
		t.Errorf("a captured worker has %d of %d places", n, Slots-total)
	} else {
		total += n
	}
	if n := fill("honest", noClaims); n < 100 {
		t.Errorf("an honest worker has %d", n)
	}
	for i := 0; s.next <= Slots; i++ {
		wantClaim(t, s, "k", fmt.Sprint("one more ", i), "", keystate.Fresh, "")
	}
	wantClaim(t, s, "k", "too late", "", keystate.Full, "")
	wantClaim(t, store(f, c, 2), "k", "too late", "", keystate.Full, "")
	if len(f.text) != Slots*slotSize {
		t.Errorf("the file has %d bytes", len(f.text))
	}
	c.now = c.now.Add(lifetime + renewal)
	wantClaim(t, s, "k", "too late", "", keystate.Fresh, "")
	if s.Live() != 1 || len(f.text) != Slots*slotSize {
		t.Errorf("%d claims, %d bytes", s.Live(), len(f.text))
	}
	wantClaim(t, store(f, c, 3), "k", "too late", "", keystate.Running, "")
}

// TestLapped checks that a process still reads the current claims after other
// processes have filled the whole ring.
func TestLapped(t *testing.T) {
	f, c := &memory{space: -1}, &clock{now: startTime}
	sleeper, s := store(f, c, 1), store(f, c, 2)
	wantClaim(t, sleeper, "k", "alice", "body", keystate.Fresh, "")
	for lap := range 5 {
		c.now = c.now.Add(lifetime + renewal)
		must(t, s.Begin())
		for i := range Slots / 4 {
			_, state, _, err := s.Claim(hash(fmt.Sprint(lap, i)), hash(fmt.Sprint(i)), [32]byte{}, 0, false)
			if must(t, err); state != keystate.Fresh {
				t.Fatal(lap, i, state)
			}
		}
		must(t, s.Commit())
	}
	wantClaim(t, sleeper, "", "nobody", "", keystate.Fresh, "")
	must(t, sleeper.Begin())
	_, state, _, err := sleeper.Claim(hash("4 3"), hash("3"), [32]byte{}, 0, false)
	if must(t, err); state != keystate.Running {
		t.Errorf("state %d", state)
	}
	must(t, sleeper.Commit())
	wantClaim(t, s, "", "nobody", "", keystate.Running, "")
}

// TestLock checks that a lock belongs to the process, not to the descriptor. It
// also checks that a claim reserves the disk space for its whole slot.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	must(t, err)
	c := &clock{now: startTime}
	s := store(Open(fd), c, 1)
	settle(t, s, wantClaim(t, s, "k", "alice", "body", keystate.Fresh, ""), keystate.Answered, "17")
	if s.liveSince != startTime {
		t.Error("the only process is not alone")
	}
	info, err := os.Stat(path)
	if must(t, err); info.Size() != 2*slotSize {
		t.Errorf("%d bytes", info.Size())
	}
	fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	wantClaim(t, store(Open(fd), c, 2), "k", "alice", "body", keystate.Answered, "17")
}

// FuzzClaims reads files with arbitrary content. The store must not crash, and
// no key may get an answer that was written for another key.
func FuzzClaims(f *testing.F) {
	m, c := &memory{space: -1}, &clock{now: startTime}
	s := store(m, c, 1)
	must(f, s.Begin())
	n, _, _, err := s.Claim(hash("alicek"), hash("alice"), hash("body"), 0, false)
	must(f, err)
	must(f, s.Commit())
	f.Add(bytes.Clone(m.text))
	must(f, s.Begin())
	must(f, s.Settle(n, keystate.Answered, []byte("17")))
	must(f, s.Commit())
	f.Add(m.text)
	f.Fuzz(func(t *testing.T, text []byte) {
		s := store(&memory{text: text, space: -1}, &clock{now: startTime}, 2)
		if s.Begin() != nil {
			return
		}
		_, state, _, err := s.Claim(hash("a"), hash("b"), hash("c"), 0, false)
		if must(t, err); state != keystate.Fresh && state != keystate.Full {
			t.Errorf("state %d", state)
		}
		must(t, s.Commit())
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
