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

// Limits of transactions. Only one transaction changes records at a time, so a
// client that stops sending must not block the others.
const (
	longestIdle = 10 * time.Second // between two requests of a transaction, if another client waits
	longestWait = 15 * time.Second // until the transaction of another client ends
)

// edit is the transaction of a connection. It begins with the first change and
// ends when the client sends AccountingFini or the connection is closed.
type edit struct {
	catalog *catalog.Catalog // the records with the changes so far
	used    time.Time        // time of the last request
	over    bool             // the transaction was rolled back because it was idle
}

// editing holds the only transaction that may change records.
type editing struct {
	mu  sync.Mutex // guards now and the fields of all edits; held during a commit
	now *edit      // nil: there is none
}

// take returns the transaction of the session s. If s has none, take begins
// one.
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

// use marks e as used now, or returns an error if e was rolled back. The caller
// holds mu.
func (g *editing) use(e *edit) error {
	if e.over {
		return errs.New(errs.Conflict, "the changes were rolled back: the client was idle for more than %v while another waited", longestIdle)
	}
	e.used = time.Now()
	return nil
}

// begin begins a transaction for s. It returns nil while the transaction of
// another client is in use.
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

// end handles AccountingFini (DBD_FINI): it commits or rolls back the changes
// of the connection.
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

// records returns the records as the client of s sees them: with the changes in
// its own transaction.
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

// register adds a record for each cluster in names that has none; the names
// come from recorded jobs. While a client changes records, register does
// nothing, and the next job causes another attempt.
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

// name returns the user name of the client, or "" if its uid has none.
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

// level returns the level of the client, which determines what it may change.
// Root and the scheduler's user may change everything. Other users have the
// level in their record.
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
