package feed

import (
	"bytes"
	"sync/atomic"

	"github.com/klauspost/compress/s2"

	"schedrestd/internal/errs"
)

// A Snapshot is all records of a view at one time. Clients share it. It is
// compressed, because slow clients may need it for long.
type Snapshot struct {
	memory Reservation
	piece  []byte   // of the last, unfinished piece
	buffer []byte   // for compressing a piece
	pieces [][]byte // compressed; each is records, separated by commas
	state  string

	users atomic.Int32 // the view is one, as long as the snapshot is its latest
	full  bool         // there was no memory for it
}

// snapshotPiece is the size from which a piece of a snapshot is finished, in
// bytes.
const snapshotPiece = 32 << 10

// add adds a record.
func (s *Snapshot) add(shown []byte) {
	if s.full {
		return
	}
	if len(s.piece) > 0 {
		s.piece = append(s.piece, ',')
	}
	if s.piece = append(s.piece, shown...); len(s.piece) >= snapshotPiece {
		s.cut()
	}
}

func (s *Snapshot) cut() {
	s.buffer = s2.Encode(s.buffer[:cap(s.buffer)], s.piece)
	s.piece = s.piece[:0]
	if !s.memory.Grow(len(s.buffer)) {
		s.full = true
		return
	}
	s.pieces = append(s.pieces, bytes.Clone(s.buffer)) // a buffer has room for a piece that can't be compressed
}

// Pieces calls each with the records, a piece at a time: rendered, and separated
// by commas. The argument more is false for the last piece. If there are no
// records, each is called once, without any.
func (s *Snapshot) Pieces(each func(records []byte, more bool) error) error {
	var buffer []byte
	for i, piece := range s.pieces {
		records, err := s2.Decode(buffer, piece)
		if err != nil {
			return err
		}
		buffer = records[:cap(records)]
		if err := each(records, i < len(s.pieces)-1); err != nil {
			return err
		}
	}
	if len(s.pieces) == 0 {
		return each(nil, false)
	}
	return nil
}

// newSnapshot returns a Snapshot without records, for one user.
func newSnapshot(memory Reservation) *Snapshot {
	s := &Snapshot{memory: memory}
	s.users.Store(1)
	return s
}

// State identifies the state of the view, like Batch.State.
func (s *Snapshot) State() string { return s.state }

// Release ends a client's use of the snapshot.
func (s *Snapshot) Release() {
	if s.users.Add(-1) == 0 {
		s.memory.Shrink(s.memory.Size())
	}
}

// finishSnapshotLocked publishes the snapshot that the pass has made.
func (v *View[R]) finishSnapshotLocked(complete bool) {
	s := v.building
	v.building = nil
	if len(s.piece) > 0 {
		s.cut()
	}
	if !complete { // the next pass tries again
		s.Release()
		return
	}
	s.piece, s.buffer, s.state = nil, nil, v.state.String()
	v.wanted = false
	v.dropSnapshotLocked()
	v.snapshot = s
	v.wakeAllLocked()
}

// dropSnapshotLocked ends the view's own use of its snapshot.
func (v *View[R]) dropSnapshotLocked() {
	if v.snapshot != nil {
		v.snapshot.Release()
		v.snapshot = nil
	}
}

// errNoMemory ends a stream for whose snapshot there is no memory.
var errNoMemory = errs.New(errs.Unavailable, "server busy: too many lists are being sent").WithHint("try again, or select fewer records")
