package rest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/feed"
	"schedrestd/model"
)

// A List is what an operation shows of a list of the controller: to a client that
// gets it, waits for a change of it, or follows its changes.
type List[R any] struct {
	Set     *feed.Set[R]
	Sources []feed.Source[R]                   // lists that contain what the answer shows: first the one that the operation reads, last a whole one
	Query   model.Query                        // with which the operation reads the list; the source sets flags and user
	Name    string                             // what the answer shows, if the path, the query without flags, and the source do not say it
	Match   func(*R) bool                      // whether the answer shows a record; the operation and a feed call it at the same time
	Show    func(schema.Encoder, *R)           // writes a record as the answer shows it; only the feed calls it
	Gone    func(e schema.Encoder, key string) // writes what names a record that the answer no longer shows
}

// Records returns the records that match. It calls the function times with the
// times of the list, after the last record.
func (l *List[R]) Records(c *Call, times func(model.ListTimes)) schema.Stream[R] {
	return func(each func(*R) error) error {
		q := l.Query
		q.Undated = c.Waits()
		t, err := l.Sources[0].Read(c.ctx, q, func(r *R) error {
			if !l.Match(r) {
				return nil
			}
			return each(r)
		})
		times(t)
		return err
	}
}

// watches reports whether the request finds out about changes of a list, which it
// begins to do before it reads the list.
func (c *Call) watches() bool {
	return c.follows || c.waits != nil && (c.waiting.listens() || c.waits.hasAnswer) && c.waiting.changes == nil
}

// Watch lets the request find out about changes of a list, if it waits for them.
// If the client follows the changes, Watch answers the request, and done is true.
func Watch[R any](c *Call, l *List[R]) (done bool, err error) {
	if !c.watches() {
		return false, nil
	}
	if !c.follows && !c.waiting.listens() {
		return false, waitWithOthers(c, l.Set.JoinExisting(ownerOf(c.cred), c.interestKey()+l.Name, &l.Sources[0]))
	}
	worker, cred := c.server.Worker, c.cred // not c, which the view would keep
	interest := feed.Interest[R]{
		Key:      c.interestKey() + l.Name,
		Match:    l.Match,
		Render:   func(to []byte, r *R) []byte { return renderRecord(to, func(e schema.Encoder) { l.Show(e, r) }) },
		Gone:     func(key string) []byte { return renderRecord(nil, func(e schema.Encoder) { l.Gone(e, key) }) },
		Reserve:  func() feed.Reservation { return worker.Memory(cred) },
		Snapshot: c.follows && c.r.Header.Get("Last-Event-ID") == "",
	}
	view, err := l.Set.Join(c.r.Context(), ownerOf(c.cred), interest, l.Sources...)
	if err != nil {
		return c.follows, err
	}
	if c.follows {
		defer view.Leave()
		return true, sendStream(c, view)
	}
	changes := &viewListener[R]{view: view, at: view.Now(), exact: view.Reads(&l.Sources[0]), interval: c.server.WatchInterval}
	c.waiting.changes = changes
	c.waiting.newer(changes.after())
	c.setOrigin()
	return false, nil
}

// waitWithOthers makes a client that has an answer already wait for the next pass
// of a view that other clients use, if there is one. The pass shows whether the
// answer still holds. The clients that a change has woken come back one after the
// other, and otherwise each of them would ask the controller.
func waitWithOthers[R any](c *Call, view *feed.View[R]) error {
	if view == nil {
		return nil
	}
	c.waiting.after = c.startedAt
	c.waiting.changes = &viewListener[R]{view: view, at: view.Now(), exact: true, interval: c.server.WatchInterval, refreshAfter: c.startedAt}
	return errHeld
}

// Entries returns the function that writes an entry of the answer's list with
// this name, as the answer shows it.
func Entries[T any](c *Call, list string, entry schema.Type[T]) func(schema.Encoder, *T) {
	view := c.view
	view.Only = c.only
	return entry.Renderer(view.In(list))
}

// ownerOf returns the owner of a feed that reads with a verified credential.
func ownerOf(cred model.Credential) feed.Owner {
	sum := sha256.Sum256([]byte(cred.Token))
	return feed.Owner{Credential: string(sum[:]) + cred.ActAs, User: cred.Holder}
}

// interestKey identifies what the answer shows. The parameter flags is not in it:
// the flags that make a difference are in the name of the source, or in
// List.Name.
func (q *request) interestKey() string {
	query, _ := url.ParseQuery(q.r.URL.RawQuery)
	for _, name := range []string{api.WaitParameter.Name, api.UntilParameter.Name, api.LimitParameter.Name, api.ContinueParameter.Name, "update_time", "flags"} {
		query.Del(name)
	}
	return fmt.Sprintf("%s %q %q", q.route.ID, q.view.Version.String()+strings.Join(slices.Sorted(maps.Values(q.params)), "/"), query.Encode()) +
		fmt.Sprint(q.view.Spelling)
}

// viewListener is a listener for the changes of a view.
type viewListener[R any] struct {
	view     *feed.View[R]
	at       feed.Change   // what the client knows
	exact    bool          // the operation reads what the feed reads
	interval time.Duration // between two passes of the feed

	refreshAfter time.Time // if not zero, the first wait is for a state that the controller was asked for after this time
}

func (l *viewListener[R]) next(ctx context.Context) (after time.Time, changed bool, err error) {
	if !l.refreshAfter.IsZero() {
		return l.refresh(ctx)
	}
	at, err := l.view.Wait(ctx, l.at)
	l.at = at
	if err == nil && l.view.IsShared() { // its clients have been woken together, and should not all go on together
		time.Sleep(rand.N(l.interval/16 + 1))
	}
	return l.after(), true, err
}

// refresh waits for the next pass of the view. If the pass takes too long, the
// request asks the controller itself, and so finds out why.
func (l *viewListener[R]) refresh(ctx context.Context) (after time.Time, changed bool, err error) {
	limited, cancel := context.WithTimeout(ctx, 2*l.interval)
	defer cancel()
	if err := l.view.Refresh(limited, l.refreshAfter); err != nil && ctx.Err() != nil {
		return time.Time{}, false, context.Cause(ctx)
	}
	l.at, l.refreshAfter = l.view.Now(), time.Time{}
	return l.after(), false, nil
}

// after returns the time after which data must have been requested to contain
// the last change.
func (l *viewListener[R]) after() time.Time {
	if l.exact {
		return l.at.Asked
	}
	return l.at.Found
}

func (l *viewListener[R]) leave() { l.view.Leave() }

// recordWriters are the writers of single records.
var recordWriters = sync.Pool{New: func() any { return schema.NewJSONWriter(nil, schema.Compact) }}

// renderRecord appends the JSON that the function write writes, which is one
// line.
func renderRecord(to []byte, write func(schema.Encoder)) []byte {
	out := recordWriters.Get().(*schema.JSONWriter)
	b := appender(to)
	out.Reset(&b)
	write(out)
	_ = out.Flush()
	if out.Reset(nil); out.Capacity() <= maxPooled {
		recordWriters.Put(out)
	}
	return b
}

// appender is an io.Writer that appends to a slice.
type appender []byte

func (a *appender) Write(b []byte) (int, error) {
	*a = append(*a, b...)
	return len(b), nil
}
