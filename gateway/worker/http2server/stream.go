package http2server

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// A stream is the http.ResponseWriter of one request. Unlike net/http's, its
// deadlines may be set by any goroutine at any time.
//
// net/http has timers for the deadlines of a stream, too. But it starts such a
// timer even if the stream has been closed since the handler set the deadline,
// and then nothing stops the timer. Until the deadline, the timer keeps the
// memory of the whole connection, which may already be closed, with all frames
// that the connection had not sent. A client could open connections faster than
// these timers expire. So net/http gets only deadlines that have passed.
type stream struct {
	http.ResponseWriter
	conn    *conn
	control *http.ResponseController

	expiring sync.WaitGroup // calls of net/http, which are made without conn.mu because they wait for net/http's goroutine

	// The fields below are guarded by conn.mu.
	read, write *time.Timer // for the deadlines; nil if there is none
	finished    bool        // whether the handler has returned
}

// connKey is the context key of a request's conn.
type connKey struct{}

func (c *conn) requestContext() context.Context { return context.WithValue(c.ctx, connKey{}, c) }

// SetReadDeadline makes reads of the body fail from t on, or removes this limit
// if t is zero.
func (s *stream) SetReadDeadline(t time.Time) error {
	s.setDeadline(&s.read, s.control.SetReadDeadline, t)
	return nil
}

// SetWriteDeadline does the same for writes of the answer.
func (s *stream) SetWriteDeadline(t time.Time) error {
	s.setDeadline(&s.write, s.control.SetWriteDeadline, t)
	return nil
}

// setDeadline makes timer call expire at t, or stops timer if t is zero.
func (s *stream) setDeadline(timer **time.Timer, expire func(time.Time) error, t time.Time) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	stop(timer)
	if t.IsZero() || s.finished {
		return
	}
	var mine *time.Timer
	mine = time.AfterFunc(time.Until(t), func() {
		s.conn.mu.Lock()
		due := *timer == mine // otherwise another deadline has replaced this one
		if due {
			s.expiring.Add(1)
		}
		s.conn.mu.Unlock()
		if due {
			defer s.expiring.Done()
			_ = expire(t)
		}
	})
	*timer = mine
}

func stop(timer **time.Timer) {
	if *timer != nil {
		(*timer).Stop()
		*timer = nil
	}
}

// finish makes deadlines have no effect. net/http's http.ResponseWriter must
// not be used afterwards.
func (s *stream) finish() {
	s.conn.mu.Lock()
	s.finished = true
	stop(&s.read)
	stop(&s.write)
	s.conn.mu.Unlock()
	s.expiring.Wait()
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// A body is the body of a request. It pays for its frames when a handler reads
// it.
type body struct {
	io.ReadCloser
	budget *budget
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.budget.took(n)
	return n, err
}
