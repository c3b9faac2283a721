// Package claims keeps the Idempotency-Keys of submissions in a file. Before a
// worker sends a submission to a daemon, the worker claims the submission's
// key. The daemon's answer is stored with the claim. Another submission with
// the same key gets that answer.
//
// The file is a ring of slots. A new claim goes into the next slot, if that
// slot is empty or its claim has expired. Nothing is moved or truncated, so an
// interrupted write can damage only the claim in the slot that is being
// written. The number of slots is limited, and so is the share of each user and
// each worker.
//
// Several auditors may use one file. They may belong to several gateways, to
// several inetd connections, or to the old and the new generation of one
// gateway. Before an auditor changes the file, it locks the file and reads the
// claims that other auditors have written.
//
// A Store holds only hashes of keys, users and bodies.
package claims

import (
	"errors"
	"fmt"
	"io"
	"time"

	"schedrestd/internal/keystate"
	"schedrestd/internal/limit"
)

const (
	// lifetime is how long a key is kept.
	lifetime = 24 * time.Hour

	// Slots is the maximum number of claims in a file (limit.IdempotencyKeys).
	Slots = 65536

	// renewal is how long requests with the same key share one slot, if none of
	// them is carried out. So clients that retry during an outage use few
	// slots.
	renewal = time.Hour

	// foreignLimit is how long another process's claim without a final state is
	// treated as running. The gateway waits for a daemon's answer for less than
	// this time.
	foreignLimit = 5 * time.Minute

	// For searchTime after a claim, a worker that looks for the job can claim a key of
	// unknown outcome again. Controllers remember jobs for this time after their end
	// (MinJobAge).
	searchTime = 5 * time.Minute
)

// File is a file of claims.
type File interface {
	io.ReaderAt
	io.WriterAt
	Sync() error

	// Lock waits until no other process holds the lock, and locks the file.
	Lock() error
	Unlock()

	// IsOnlyUser reports whether no other process uses the file. It also marks
	// the file as used by this process, so that IsOnlyUser returns false in
	// other processes until this process exits.
	IsOnlyUser() bool
}

// A Store manages the claims in a file. Only one goroutine uses the Store.
type Store struct {
	file    File
	process [8]byte // id of this process
	clock   Clock
	epoch   time.Time // when Clock.Elapsed was 0; zero: the file has not been read yet (see setClock)

	liveSince time.Time // older claims without an answer belong to processes that have exited
	next      uint64    // number of the next claim; 0: the whole file must be read
	live      []*claim  // in the order of their numbers; expired claims are removed from the front
	byKey     map[[32]byte]*claim
	users     map[[32]byte]int  // number of claims in live, by share
	open      map[uint64]*claim // this process's claims for requests that have not ended
	unsynced  []*claim          // new claims that are not synced yet; they are the last elements of live
	renewed   []*claim          // renewed claims that are not synced yet
	dirty     bool              // something was written since the last sync
	damaged   int               // claims that readAll could not decode
}

// New returns a Store for the claims in file. It does not read the file; Begin
// does. The process argument is a random id for this process.
func New(file File, process [8]byte, clock Clock) *Store {
	return &Store{file: file, process: process, clock: clock, open: map[uint64]*claim{}}
}

// Begin locks the file and reads the claims that other processes have written.
func (s *Store) Begin() error {
	if err := s.file.Lock(); err != nil {
		return fmt.Errorf("lock the file: %w", err)
	}
	if err := s.readNew(); err != nil {
		s.next = 0 // the whole file is read again next time
		s.file.Unlock()
		return err
	}
	s.expire()
	return nil
}

// Commit syncs to disk all changes made since Begin, and unlocks the file. If
// Commit fails, the claims made since Begin must not be used.
func (s *Store) Commit() error {
	defer s.file.Unlock()
	var err error
	if s.dirty {
		err = s.file.Sync()
	}
	if err != nil {
		s.undo()
	}
	s.unsynced, s.renewed, s.dirty = nil, nil, false
	return err
}

// undo withdraws the claims made since Begin.
func (s *Store) undo() {
	for _, c := range s.unsynced {
		s.forget(c)
		// If this write fails too, the claim stays in the file. Its key is
		// treated as the key of a request whose outcome is unknown.
		_, _ = s.file.WriteAt(make([]byte, claimSize), slotOffset(c.number))
	}
	for _, c := range s.renewed {
		delete(s.open, c.number)
		_, _ = s.file.WriteAt(encodeEnd(c.number, c.before, nil), slotOffset(c.number)+endOffset)
	}
	if len(s.unsynced) > 0 {
		s.live, s.next = s.live[:len(s.live)-len(s.unsynced)], s.unsynced[0].number
	}
}

// Lookup returns the state of a key for a request without claiming it: NotDone
// if the key is free.
func (s *Store) Lookup(key, body [32]byte) (keystate.State, []byte, error) {
	c := s.byKey[key]
	if c == nil {
		return keystate.NotDone, nil, nil
	}
	state, answer, err := s.refresh(c)
	switch {
	case err != nil:
		return keystate.Full, nil, err
	case state != keystate.NotDone && c.body != body:
		return keystate.Mismatch, nil, nil
	}
	return state, answer, nil
}

// Claim claims a key for a request. The share argument is the hash of the user
// whose limit the claim counts against, and body is the hash of the request.
// workerClaims is the number of claims that the worker has made so far. With search, a key
// of unknown outcome is free for searchTime after it was claimed, because the worker finds
// out the outcome.
func (s *Store) Claim(key, share, body [32]byte, workerClaims int, search bool) (uint64, keystate.State, []byte, error) {
	state, answer, err := s.Lookup(key, body)
	c := s.byKey[key]
	search = search && state == keystate.Unknown && c != nil && s.now().Sub(c.claimedAt) < searchTime
	if err != nil || state != keystate.NotDone && !search {
		return 0, state, answer, err
	}
	if c != nil && (search || s.now().Sub(c.placedAt) < renewal) {
		return s.renew(c, body, state)
	}
	free := Slots
	if len(s.live) > 0 {
		free -= int(s.next - s.live[0].number)
	}
	userClaims := s.users[share]
	if free <= 0 || userClaims >= limit.IdempotencyKeys.Share || userClaims > 0 && userClaims >= free || workerClaims > 0 && workerClaims >= free {
		return 0, keystate.Full, nil, nil
	}
	now := s.now()
	c = &claim{number: s.next, placedAt: now, claimedAt: now, process: s.process, key: key, share: share, body: body}
	if err := s.write(c); err != nil {
		return 0, keystate.Full, nil, err
	}
	s.add(c)
	s.open[c.number] = c
	s.unsynced = append(s.unsynced, c)
	return c.number, keystate.Fresh, nil, nil
}

// renew claims the key of c for another request. The earlier request was not carried
// out, or its outcome is unknown, so the new claim overwrites the old one.
func (s *Store) renew(c *claim, body [32]byte, before keystate.State) (uint64, keystate.State, []byte, error) {
	next := *c
	next.process, next.body, next.before = s.process, body, before
	if before != keystate.Unknown { // otherwise the job of the first claim may exist
		next.claimedAt = s.now()
	}
	if err := s.write(&next); err != nil {
		_, _ = s.file.WriteAt(encodeEnd(c.number, before, nil), slotOffset(c.number)+endOffset)
		return 0, keystate.Full, nil, err
	}
	*c = next
	s.open[c.number] = c
	s.renewed = append(s.renewed, c)
	return c.number, keystate.Fresh, nil, nil
}

// write writes a claim whose request is still running. It first reserves disk
// space for the end record, so that a full disk is noticed before the request
// is carried out.
func (s *Store) write(c *claim) error {
	s.dirty = true
	if _, err := s.file.WriteAt(make([]byte, slotSize-endOffset), slotOffset(c.number)+endOffset); err != nil {
		return err
	}
	_, err := s.file.WriteAt(c.encode(), slotOffset(c.number))
	return err
}

// Settle writes the final state of a claim that this process has made. The
// state is Answered, Unknown or NotDone. If Settle fails, the claim keeps the
// state Running.
func (s *Store) Settle(number uint64, state keystate.State, answer []byte) error {
	c, ok := s.open[number]
	if !ok {
		return nil // the claim has expired
	}
	if state == keystate.NotDone && c.before == keystate.Unknown {
		state = keystate.Unknown // nothing was found out about the earlier request
	}
	s.dirty = true
	_, err := s.file.WriteAt(encodeEnd(number, state, answer), slotOffset(number)+endOffset)
	if err == nil {
		delete(s.open, number)
	}
	return err
}

// refresh returns the state of the claim c. It first reads c again from the
// file, because another process may have renewed the claim. If the claim has
// expired, refresh returns NotDone, which means that the key is free.
func (s *Store) refresh(c *claim) (keystate.State, []byte, error) {
	current, err := s.read(c.number)
	switch {
	case err != nil:
		return 0, nil, err
	case current == nil: // the disk has damaged the claim, which was valid before
		return keystate.Unknown, nil, nil
	case current.number != c.number || current.key != c.key: // another claim has overwritten it
		return keystate.NotDone, nil, nil
	}
	c.claimedAt, c.process, c.body = current.claimedAt, current.process, current.body
	if s.now().Sub(c.claimedAt) >= lifetime {
		return keystate.NotDone, nil, nil
	}
	return s.state(c)
}

// state returns the state of a claim that has not expired.
func (s *Store) state(c *claim) (keystate.State, []byte, error) {
	b := make([]byte, slotSize-endOffset)
	if _, err := s.file.ReadAt(b, slotOffset(c.number)+endOffset); err != nil && err != io.EOF {
		return 0, nil, err
	}
	if state, answer, ok := decodeEnd(b, c.number); ok && (state == keystate.Answered || state == keystate.Unknown || state == keystate.NotDone) {
		return state, answer, nil
	}
	running := s.open[c.number] != nil
	if c.process != s.process {
		running = c.claimedAt.After(s.liveSince) && s.now().Sub(c.claimedAt).Abs() < foreignLimit
	}
	if running {
		return keystate.Running, nil, nil
	}
	return keystate.Unknown, nil, nil
}

// readNew reads the claims that were written since its last call. On its first
// call, it reads all claims. It also reads all claims if other processes have
// filled the whole ring since its last call.
func (s *Store) readNew() error {
	for s.next > 0 {
		c, err := s.read(s.next)
		switch {
		case err != nil:
			return err
		case c == nil || c.number < s.next:
			return nil
		case c.number > s.next: // other processes have filled the whole ring in the meantime
			s.next = 0
		default:
			s.add(c)
		}
	}
	return s.readAll()
}

// readAll reads the whole file.
func (s *Store) readAll() error {
	var places [Slots]*claim
	var newest time.Time
	damaged, highest, piece := 0, uint64(0), make([]byte, 512*slotSize)
	for at := 0; at < Slots; at += 512 {
		n, err := s.file.ReadAt(piece, int64(at)*slotSize)
		if err != nil && err != io.EOF {
			return err
		}
		for i := 0; i*slotSize < n; i++ {
			c, err := decode(piece[i*slotSize:n], at+i)
			if err != nil {
				return err
			}
			if c == nil {
				if !isEmpty(piece[i*slotSize : n]) {
					damaged++
				}
				continue
			}
			places[at+i] = c
			highest = max(highest, c.number)
			if c.claimedAt.After(newest) {
				newest = c.claimedAt
			}
		}
		if err == io.EOF {
			break
		}
	}
	s.damaged = damaged
	if s.liveSince.IsZero() {
		s.setClock(newest)
		s.liveSince = time.Unix(0, 0)
		if s.file.IsOnlyUser() {
			s.liveSince = s.now()
		}
	}
	s.live, s.byKey, s.users = nil, map[[32]byte]*claim{}, map[[32]byte]int{}
	s.next = 1
	if highest >= Slots {
		s.next = highest - Slots + 1
	}
	for s.next <= highest {
		c := places[s.next%Slots]
		if c == nil || c.number != s.next || len(s.live) == 0 && s.expired(c) {
			s.next++
			continue
		}
		s.add(c)
	}
	return nil
}

// read returns the claim in the slot for the given number, or nil if the slot
// has no valid claim.
func (s *Store) read(number uint64) (*claim, error) {
	b := make([]byte, claimSize)
	n, err := s.file.ReadAt(b, slotOffset(number))
	if err != nil && err != io.EOF {
		return nil, err
	}
	return decode(b[:n], int(number%Slots))
}

func decode(b []byte, at int) (*claim, error) {
	c, newer := decodeClaim(b)
	if newer {
		return nil, errors.New("the record was written by a later version of this program")
	}
	if c != nil && int(c.number%Slots) != at {
		return nil, nil
	}
	return c, nil
}

// add appends c to the claims in memory. c must have the next number.
func (s *Store) add(c *claim) {
	s.live, s.byKey[c.key], s.next = append(s.live, c), c, c.number+1
	s.users[c.share]++
}

// expire drops expired claims.
func (s *Store) expire() {
	for len(s.live) > 0 && s.expired(s.live[0]) {
		s.forget(s.live[0])
		s.live = s.live[1:]
	}
}

// forget drops a claim from the maps.
func (s *Store) forget(c *claim) {
	delete(s.open, c.number)
	if s.byKey[c.key] == c {
		delete(s.byKey, c.key)
	}
	if s.users[c.share]--; s.users[c.share] == 0 {
		delete(s.users, c.share)
	}
}

// expired reports whether a claim no longer needs its slot. When Lifetime and
// renewal have both passed since the key was first claimed, the key and all its
// renewals have expired.
func (s *Store) expired(c *claim) bool { return s.now().Sub(c.placedAt) >= lifetime+renewal }

// Damaged returns the number of claims in the file that could not be decoded
// when the whole file was last read. Their keys are free.
func (s *Store) Damaged() int { return s.damaged }

// Live returns the number of claims.
func (s *Store) Live() int { return len(s.live) }

func slotOffset(number uint64) int64 { return int64(number%Slots) * slotSize }
