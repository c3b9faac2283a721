package claims

import "time"

// A Clock gives the time in two ways. A Store needs both.
type Clock interface {
	// Wall returns the time of day. An administrator or a time service may set
	// it forwards and back at any moment.
	Wall() time.Time

	// Elapsed returns a duration that grows at the rate of real time and is not
	// affected by changes of the time of day.
	Elapsed() time.Duration
}

// SystemClock returns a Clock that reads the machine's clocks.
func SystemClock() Clock { return systemClock{time.Now()} }

type systemClock struct{ start time.Time }

func (systemClock) Wall() time.Time          { return time.Now().Round(0) }
func (c systemClock) Elapsed() time.Duration { return time.Since(c.start) }

// setClock determines the time at which the Store starts. The argument newest
// is the time of the newest claim in the file. From then on the Store's time
// advances with Clock.Elapsed. If it followed the time of day, a clock that is
// wrong for a moment would make all claims expire.
//
// The file proves that it is not earlier than newest. So claims do not expire
// too early if the clock is slow when this process starts, or was fast when
// they were written.
func (s *Store) setClock(newest time.Time) {
	start := s.clock.Wall()
	if start.Before(newest) {
		start = newest
	}
	s.epoch = start.Add(-s.clock.Elapsed())
}

// now returns the current time as the Store counts it.
func (s *Store) now() time.Time { return s.epoch.Add(s.clock.Elapsed()) }
