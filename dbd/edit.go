package dbd

import (
	"context"
	"sync"
	"time"

	"schedrestd/become/nss"
	"schedrestd/dbd/catalog"
	"schedrestd/errs"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Limits of transactions. Only one changes records at a time, so one whose
// client is silent must not keep others from working.
const (
	longestIdle = 10 * time.Second // between requests of a transaction, while others wait
	longestWait = 15 * time.Second // for the transaction of another client
)

// edit is the transaction of a connection. It begins with the first change and
// ends with AccountingFini or with the connection.
type edit struct {
	catalog *catalog.Catalog // with the changes so far
	used    time.Time        // last request
	over    bool             // rolled back because it was idle
}

// editing is the transaction that may change records.
type editing struct {
	mu  sync.Mutex // guards now and the fields of all edits; held during a commit
	now *edit      // nil: none
}

// take returns the transaction of the session, and begins one if there is none.
func (d *Daemon) take(ctx context.Context, s *server.Session) (*edit, error) {
	if e, ok := s.Value.(*edit); ok {
		d.editing.mu.Lock()
		defer d.editing.mu.Unlock()
		return e, d.editing.use(e)
	}
	for end := time.Now().Add(d.wait); ; {
		if e := d.begin(s); e != nil {
			return e, nil
		}
		if time.Now().After(end) {
			return nil, errs.New(errs.Unavailable, "another client is changing records; try again")
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// use marks e as used. The caller holds mu.
func (g *editing) use(e *edit) error {
	if e.over {
		return errs.New(errs.Conflict, "the changes were rolled back: the client was idle for more than %v while another waited", longestIdle)
	}
	e.used = time.Now()
	return nil
}

// begin begins a transaction for s. It returns nil while that of another client
// is in use.
func (d *Daemon) begin(s *server.Session) *edit {
	g := &d.editing
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now != nil {
		if time.Since(g.now.used) < d.idle {
			return nil
		}
		g.now.over, g.now.catalog = true, nil
	}
	e := &edit{catalog: d.store.Catalog(), used: time.Now()}
	g.now = e
	s.Value, s.Close = e, func() { d.finish(s) }
	return e
}

// finish ends the transaction of s, if it has one.
func (d *Daemon) finish(s *server.Session) {
	e, ok := s.Value.(*edit)
	if !ok {
		return
	}
	d.editing.mu.Lock()
	defer d.editing.mu.Unlock()
	if d.editing.now == e {
		d.editing.now = nil
	}
	s.Value, s.Close = nil, nil
}

// end answers AccountingFini (DBD_FINI): it commits or rolls back the changes of
// the connection.
func (d *Daemon) end(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.AccountingEnd
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	defer d.finish(r.Session)
	if e, ok := r.Session.Value.(*edit); ok && q.Commit != 0 {
		d.editing.mu.Lock()
		defer d.editing.mu.Unlock()
		if err := d.editing.use(e); err != nil {
			return 0, nil, err
		}
		if err := d.store.Replace(ctx, e.catalog); err != nil {
			return 0, nil, err
		}
	}
	return done(r)
}

// records returns the records as the client sees them: with the changes of its
// own transaction.
func (d *Daemon) records(s *server.Session) *catalog.Catalog {
	if e, ok := s.Value.(*edit); ok {
		d.editing.mu.Lock()
		defer d.editing.mu.Unlock()
		if d.editing.use(e) == nil {
			return e.catalog
		}
	}
	return d.store.Catalog()
}

// register adds the clusters of recorded jobs that the records lack. While a
// client changes records it does nothing; the next job tries again.
func (d *Daemon) register(ctx context.Context, names []string) error {
	d.editing.mu.Lock()
	defer d.editing.mu.Unlock()
	known := d.store.Catalog().Clusters
	missing := false
	for _, name := range names {
		missing = missing || known[name] == nil
	}
	if !missing || d.editing.now != nil {
		return nil
	}
	return d.store.addClusters(ctx, names)
}

// name returns the name of the client, or "" for a uid without one.
func (d *Daemon) name(r *server.Request) string {
	if r.Identity.Name != "" {
		return r.Identity.Name
	}
	u, err := nss.LookupUID(r.Identity.UID)
	if err != nil {
		return ""
	}
	return u.Name
}

// level returns what the client may change: root and the scheduler's user
// everything, others according to their own record.
func (d *Daemon) level(r *server.Request) uint16 {
	if d.privacy.Super(r.Identity.UID) {
		return catalog.Administrator
	}
	if u := d.store.Catalog().Users[d.name(r)]; u != nil {
		return u.AdminLevel
	}
	return 0
}

// denied returns the error for a client whose level is too low.
func denied(what string) error {
	e := errs.New(errs.Denied, "you may not change %s", what)
	e.Number = fault.AccessDenied
	return e
}
