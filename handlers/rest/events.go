package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"schedrestd/handlers/feed"
	"schedrestd/internal/errs"
)

// A client that follows a list gets events in the format of the HTML standard
// (server-sent events): first the list, in pieces, then each change. An event
// that completes a state of the list has an id, from which a client that comes
// back can go on, at any worker.

// MediaEvents is the media type of a stream of events.
const MediaEvents = "text/event-stream"

// The names of events, beside those of package feed.
const (
	eventSnapshot = "snapshot" // a piece of the list
	eventReset    = "reset"    // what the client knows is out of date; a snapshot follows
	eventEnd      = "end"      // the last event, with a reason
	eventLate     = "late"     // how long the gateway has not read the list
)

const (
	heartbeat   = 15 * time.Second  // time between comments, so that proxies do not close an idle stream
	retryEvents = "retry: 2000\n\n" // in milliseconds: when a client comes back after a stream has broken
)

// A stopReason says why the server ends all requests that wait. It is the cause
// of their contexts.
type stopReason struct{ error }

// errNeeded ends a wait because another client needs the connection.
var errNeeded = stopReason{errors.New("too many connections are open")}

// StopWaiting makes all requests that wait answer now, and ends all streams of
// events. Their last event has the reason.
func (s *Server) StopWaiting(reason string) { s.stopWaiting(stopReason{errors.New(reason)}) }

// offers returns the media types that the answer can have.
func (q *request) offers() []string {
	switch {
	case q.route != nil && q.route.Text:
		return []string{MediaText, MediaEvents}
	case q.route != nil && q.route.Collection != "":
		return append(BodyMedia[:len(BodyMedia):len(BodyMedia)], MediaEvents)
	case q.route != nil && q.route.CSV:
		return append(BodyMedia[:len(BodyMedia):len(BodyMedia)], MediaCSV)
	}
	return BodyMedia
}

// sendStream sends the records of a view, and then their changes, until the client
// leaves or the server ends the stream.
func sendStream[R any](c *Call, view *feed.View[R]) error {
	return c.stream(MediaEvents, func(ctx context.Context, out *eventWriter) {
		stream := startStream(ctx, out, view)
		defer stream.Close()
		sendEvents(ctx, out, stream)
	})
}

// stream answers with what the function send writes. It has no end of its own: the
// context ends when the client leaves, when its token expires, or when the server
// ends the stream.
func (c *Call) stream(media string, send func(context.Context, *eventWriter)) error {
	ctx, _, end, err := c.park()
	if err != nil {
		return err
	}
	defer end()
	if left, ok := c.untilExpiry(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, left, stopReason{errors.New("the token has expired")})
		defer cancel()
	}
	h := c.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // for nginx, which would collect events
	h.Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	c.server.Worker.CountWatch(feed.Streams, 1)
	defer func(begun time.Time) {
		c.server.Worker.CountWatch(feed.Streams, -1)
		c.idle += time.Since(begun)
	}(time.Now())
	c.w.stopped = nil // so that the last event can say why
	send(ctx, &eventWriter{c: c, ctx: ctx, flush: http.NewResponseController(c.w).Flush})
	return nil
}

// startStream starts the stream of events, after the last event that the client
// has received.
func startStream[R any](ctx context.Context, out *eventWriter, view *feed.View[R]) *feed.Stream[R] {
	id := out.c.r.Header.Get("Last-Event-ID")
	stream, resumed := view.Follow(id)
	out.text(retryEvents)
	if out.send(); id == "" || resumed {
		return stream
	}
	// Another worker may have seen a change that this one has not seen yet. The
	// client must not get a list without it.
	limited, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	_ = view.Refresh(limited, out.c.startedAt) // the stream reports an error
	stream.Close()
	if stream, resumed = view.Follow(id); !resumed {
		out.event(eventReset, "", nil)
	}
	return stream
}

// sendEvents sends events until the client leaves or the server ends the stream.
func sendEvents[R any](ctx context.Context, out *eventWriter, stream *feed.Stream[R]) {
	for {
		out.send()
		wasLost := stream.Lost()
		limited, cancel := context.WithTimeoutCause(ctx, heartbeat, errIdle)
		snapshot, changes, err := stream.Next(limited)
		cancel()
		if ctx.Err() != nil {
			if snapshot != nil {
				snapshot.Release()
			}
			snapshot, err = nil, context.Cause(ctx)
		}
		switch {
		case out.over():
			return
		case err == errIdle:
			out.comment()
		case errs.KindOf(err) == errs.Unauthenticated && out.c.client.Claims.Gateway: // it was revoked, and the keeper has refused the next request to the daemon
			out.revoked()
			return
		case err != nil:
			out.end(err, context.Cause(ctx))
			return
		case snapshot != nil:
			if !wasLost { // the client was too slow for the changes, or they were not recorded
				out.event(eventReset, "", nil)
			}
			if out.snapshot(out.c.route.Collection, snapshot) != nil && ctx.Err() == nil {
				return
			}
		default:
			out.changes(changes)
		}
		out.lag(stream.Lag())
	}
}

// over reports whether the token is no longer accepted, for which it sends the last
// event, or the client has left.
func (w *eventWriter) over() bool {
	switch {
	case w.c.tokenEnd() == errRevoked:
		w.revoked()
	case w.c.tokenEnd() == errNotForUser:
		w.end(errNotForUser, stopReason{errors.New("the gateway token no longer acts for this user")})
	case w.c.tokenEnd() != nil:
		w.end(w.c.tokenEnd(), nil)
	case w.err == nil && w.c.r.Context().Err() == nil:
		return false
	}
	return true
}

// revoked sends the last event of a stream whose gateway token is no longer accepted.
func (w *eventWriter) revoked() {
	w.end(errRevoked, stopReason{errors.New("the gateway token is no longer accepted")})
}

// untilExpiry returns the time until the token of the request expires.
func (q *request) untilExpiry() (left time.Duration, ok bool) {
	now := time.Now
	if q.server.Auth.Now != nil {
		now = q.server.Auth.Now
	}
	expires := q.client.Claims.Expires
	return expires.Sub(now()), !expires.IsZero()
}

// eventWriter writes events to a client.
type eventWriter struct {
	c     *Call
	ctx   context.Context // its end ends the stream, in the middle of a list, too
	flush func() error
	err   error
	buf   []byte
	late  bool // the last event of the kind late had an age
}

// errIdle ends a wait in which nothing has come for a while.
var errIdle = errs.New(errs.Internal, "nothing has changed")

// comment adds a comment, which shows the client that the connection works.
func (w *eventWriter) comment() { w.text(":\n\n") }

// lag adds an event if the list was last read that long ago and this is too long,
// and one when it is no longer. A client can't notice it otherwise, because the
// comments go on.
func (w *eventWriter) lag(since time.Duration) {
	late := since > heartbeat+2*w.c.server.WatchInterval // a list in which nothing changes is read half as often
	switch {
	case late:
		w.event(eventLate, "", fmt.Appendf(nil, `{"seconds":%d}`, int(since.Seconds())))
	case w.late:
		w.event(eventLate, "", []byte(`{"seconds":0}`))
	}
	w.late = late
}

func (w *eventWriter) text(s string) { w.buf = append(w.buf, s...) }

// eventCounts are the counts of events.
var eventCounts = map[string]feed.Count{
	eventSnapshot: feed.EventSnapshot, eventReset: feed.EventReset, eventEnd: feed.EventEnd, eventLate: feed.EventLate,
	string(feed.Added): feed.EventAdded, string(feed.Changed): feed.EventChanged, string(feed.Removed): feed.EventRemoved,
}

// event adds an event. The data is one line; nil stands for an empty object,
// because an event without data is ignored.
func (w *eventWriter) event(name, id string, data []byte) {
	if count, ok := eventCounts[name]; ok && w.err == nil {
		w.c.server.Worker.CountWatch(count, 1)
	}
	w.text("event: " + name + "\n")
	if id != "" {
		w.text("id: " + id + "\n")
	}
	w.text("data: ")
	if data == nil {
		w.text("{}")
	}
	w.buf = append(w.buf, data...)
	w.text("\n\n")
}

// send sends what was added.
func (w *eventWriter) send() {
	if w.err == nil && len(w.buf) > 0 {
		if _, w.err = w.c.w.Write(w.buf); w.err == nil {
			w.err = w.flush()
		}
	}
	if w.buf = w.buf[:0]; cap(w.buf) > 4<<10 {
		w.buf = nil // a stream is mostly idle
	}
}

// snapshot sends the list in pieces, and releases it. Only the last piece has an
// id.
func (w *eventWriter) snapshot(collection string, s *feed.Snapshot) error {
	defer s.Release()
	return s.Pieces(func(records []byte, more bool) error {
		if w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		id := s.State()
		data := append([]byte(`{"`+collection+`":[`), records...)
		if more {
			id = ""
			data = append(data, `],"more":true}`...)
		} else {
			data = append(data, `],"more":false}`...)
		}
		w.event(eventSnapshot, id, data)
		w.send()
		return w.err
	})
}

// changes sends changes. Only the last one of a batch has an id, because only
// then the client has a state that the list had.
func (w *eventWriter) changes(batches []feed.Batch) {
	for _, b := range batches {
		for i, e := range b.Events {
			id := ""
			if i == len(b.Events)-1 {
				id = b.State
			}
			w.event(string(e.Kind), id, e.Data)
			if len(w.buf) >= 32<<10 {
				if w.send(); w.ctx.Err() != nil {
					return
				}
			}
		}
	}
	w.send()
}

// end sends the last event, with the reason.
func (w *eventWriter) end(err, cause error) {
	reason := strings.TrimSpace(Problem(err).Description)
	if stop, ok := cause.(stopReason); ok {
		reason = stop.Error()
	}
	data, _ := json.Marshal(map[string]string{"reason": reason})
	w.event(eventEnd, "", data)
	w.send()
}
