package dbd

import (
	"context"
	"sync"
	"time"

	"schedrestd/become/nss"
	"schedrestd/bundled/dbd/catalog"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Only one transaction can change records at a time. These limits ensure that a
// client that stops sending does not block other clients.
const (
	defaultMaxIdle = 10 * time.Second // between two requests of a transaction, if another client waits
	defaultMaxWait = 15 * time.Second // until the transaction of another client ends
)

// An edit is the transaction of a connection. It begins with the first change.
// It ends when the client sends AccountingFini or the connection is closed.
type edit struct {
	catalog    *catalog.Catalog // the records with the changes so far
	usedAt     time.Time        // time of the last request
	rolledBack bool             // the transaction was rolled back because it was idle
}

// An editSlot holds the open transaction, if there is one. Only this
// transaction may change records.
type editSlot struct {
	maxIdle time.Duration // see defaultMaxIdle

	mu      sync.Mutex // guards current and the fields of all edits; held during a commit
	current *edit      // nil: there is none
}

// acquireEdit returns the transaction of the session s. If there is none yet,
// acquireEdit begins one. Users who wait for that take turns, so that a user with
// many sessions delays others by at most three transactions.
func (d *Daemon) acquireEdit(ctx context.Context, s *server.Session, uid uint32) (*edit, error) {
	if e, ok := s.Value.(*edit); ok {
		d.editSlot.mu.Lock()
		defer d.editSlot.mu.Unlock()
		return e, d.editSlot.touchLocked(e)
	}
	limited, cancel := context.WithTimeoutCause(ctx, d.maxWait, errs.New(errs.Unavailable, "another client is changing records; try again"))
	defer cancel()
	turn, err := d.turns.Acquire(limited, uid)
	if err != nil {
		return nil, err
	}
	defer turn.Release()
	for {
		if e := d.beginEdit(s); e != nil {
			return e, nil
		}
		select {
		case <-limited.Done():
			return nil, context.Cause(limited)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// touchLocked sets the time of e's last request to now. If e was rolled back,
// touchLocked returns an error instead.
func (g *editSlot) touchLocked(e *edit) error {
	if e.rolledBack {
		return errs.New(errs.Conflict,
			"the changes were rolled back: the client was idle for more than %v while another waited", g.maxIdle)
	}
	e.usedAt = time.Now()
	return nil
}

// beginEdit begins a transaction for the session s. If another client's
// transaction is in use, beginEdit returns nil. If that transaction has been
// idle for maxIdle, beginEdit first rolls it back.
func (d *Daemon) beginEdit(s *server.Session) *edit {
	g := &d.editSlot
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current != nil {
		if time.Since(g.current.usedAt) < g.maxIdle {
			return nil
		}
		g.current.rolledBack, g.current.catalog = true, nil
	}
	e := &edit{catalog: d.store.Catalog(), usedAt: time.Now()}
	g.current = e
	s.Value, s.Close = e, func() { d.closeEdit(s) }
	return e
}

// closeEdit ends the transaction of s, if it has one.
func (d *Daemon) closeEdit(s *server.Session) {
	e, ok := s.Value.(*edit)
	if !ok {
		return
	}
	d.editSlot.mu.Lock()
	defer d.editSlot.mu.Unlock()
	if d.editSlot.current == e {
		d.editSlot.current = nil
	}
	s.Value, s.Close = nil, nil
}

// handleFini handles AccountingFini (DBD_FINI): it commits or rolls back the
// changes of the connection.
func (d *Daemon) handleFini(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.AccountingEnd
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	defer d.closeEdit(r.Session)
	if e, ok := r.Session.Value.(*edit); ok && q.Commit != 0 {
		d.editSlot.mu.Lock()
		defer d.editSlot.mu.Unlock()
		if err := d.editSlot.touchLocked(e); err != nil {
			return 0, nil, err
		}
		if err := d.store.Replace(ctx, e.catalog); err != nil {
			return 0, nil, err
		}
	}
	return success(r)
}

// records returns the records that the client of s sees. They include the
// changes in the client's own transaction.
func (d *Daemon) records(s *server.Session) *catalog.Catalog {
	if e, ok := s.Value.(*edit); ok {
		d.editSlot.mu.Lock()
		defer d.editSlot.mu.Unlock()
		if d.editSlot.touchLocked(e) == nil {
			return e.catalog
		}
	}
	return d.store.Catalog()
}

// registerClusters adds a record for each cluster in names that has none. The
// names come from recorded jobs. If a client's transaction is open,
// registerClusters does nothing. It is called again when the next jobs are
// recorded.
func (d *Daemon) registerClusters(ctx context.Context, names []string) error {
	d.editSlot.mu.Lock()
	defer d.editSlot.mu.Unlock()
	var existing []string
	for name := range d.store.Catalog().Clusters {
		existing = append(existing, name)
	}
	missing := false
	for _, name := range names {
		missing = missing || !model.HasName(existing, name)
	}
	if !missing || d.editSlot.current != nil {
		return nil
	}
	return d.store.addClusters(ctx, names)
}

// userName returns the user name of the client. It returns "" if no user has
// the client's uid.
func (d *Daemon) userName(r *server.Request) string {
	if r.Identity.Name != "" {
		return r.Identity.Name
	}
	u, err := nss.LookupUID(r.Identity.UID)
	if err != nil {
		return ""
	}
	return u.Name
}

// adminLevel returns the level of the client, which determines what the client
// may change. Root, the scheduler's user and the daemon's own user may change
// everything. The level of any other user is in the user's record.
func (d *Daemon) adminLevel(r *server.Request) uint16 {
	if d.privacy.Super(r.Identity.UID) {
		return catalog.Administrator
	}
	if u := d.store.Catalog().Users[d.userName(r)]; u != nil {
		return u.AdminLevel
	}
	return 0
}

// denied returns the error for a client whose level is too low.
func denied(object string) error {
	return errs.New(errs.Denied, "you may not change %s", object).WithNumber(fault.AccessDenied)
}
