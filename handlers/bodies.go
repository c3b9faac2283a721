package handlers

import (
	"context"
	"runtime"
	"sync"

	"schedrestd/errs"
)

// bodies bounds what the bodies of all requests take at one time. One body may be MaxBody long,
// and as many may be read as there are requests in progress: without a bound of their sum
// a few dozen users, or one with a token and patience, would have a worker hold gigabytes.
type bodies struct {
	parsing chan struct{} // a place for each large one that is being parsed

	mu   sync.Mutex
	left int64 // bytes that may still be taken
}

const (
	freeBody  = 1 << 20  // bytes of each body that are not counted; few are longer
	stepBody  = 4 << 20  // bytes that are taken at a time
	fewBodies = 4        // as many of the longest may be read at one time
	longParse = 64 << 10 // bytes from which on a body waits for a place to be parsed: it becomes many times as much
)

func newBodies(longest int64) *bodies {
	return &bodies{left: fewBodies * max(longest, stepBody), parsing: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
}

// share is what one request has taken of bodies.
type share struct {
	of    *bodies
	taken int64
}

// grow makes room for n bytes of a body in all, or says that there is none now. It does not
// wait: two bodies of which each has half the room would wait for each other.
func (s *share) grow(n int64) error {
	if n <= freeBody+s.taken {
		return nil
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for n > freeBody+s.taken {
		if s.of.left < stepBody {
			return errs.New(errs.Unavailable, "too many large bodies are being read at this moment")
		}
		s.of.left -= stepBody
		s.taken += stepBody
	}
	return nil
}

// release gives back what was taken.
func (s *share) release() {
	if s.taken == 0 {
		return
	}
	s.of.mu.Lock()
	s.of.left += s.taken
	s.of.mu.Unlock()
	s.taken = 0
}

// parse calls f when there is a place to parse a body of n bytes.
func (b *bodies) parse(ctx context.Context, n int, f func() error) error {
	if n < longParse {
		return f()
	}
	select {
	case b.parsing <- struct{}{}:
		defer func() { <-b.parsing }()
		return f()
	case <-ctx.Done():
		return cancelled(ctx.Err())
	}
}

// cancelled returns the error of a request that ended before its body was parsed.
func cancelled(err error) error {
	return errs.Wrap(err, errs.Unavailable, "request cancelled before its body was parsed")
}
