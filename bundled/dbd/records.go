package dbd

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"schedrestd/bundled/dbd/catalog"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// recordTable is the statement that creates the table for the records of
// package catalog. Each record is encoded as a message that lists only this
// record.
const recordTable = `CREATE TABLE record (
	kind     TEXT    NOT NULL, -- a constant below
	key      TEXT    NOT NULL, -- name, or number
	protocol INTEGER NOT NULL, -- version that value is in
	value    BLOB    NOT NULL,
	PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID`

// These are the kinds of records. The number of a deleted association or QOS is
// never used again, so the database stores the highest numbers that have ever
// been used. They are in two records of the kind kindLast. The key of one is
// kindAssoc, for associations, and the key of the other is kindQOS, for QOS.
const (
	kindCluster = "cluster"
	kindAccount = "account"
	kindUser    = "user"
	kindAssoc   = "association"
	kindQOS     = "qos"
	kindLast    = "last"
)

// A row is a row to write to the table named record. If its value is nil, the
// row is removed from the table instead.
type row struct {
	kind, key string
	value     []byte
}

// A listing is a message that contains a list of records.
type listing[T any] interface {
	message.Body
	List() *message.ListResponse[T]
}

func clusterList() listing[model.Cluster]         { return new(message.Clusters) }
func accountList() listing[model.Account]         { return new(message.Accounts) }
func userList() listing[model.User]               { return new(message.Users) }
func associationList() listing[model.Association] { return new(message.Associations) }
func qosList() listing[model.QOS]                 { return new(message.QOSList) }

// differences returns the rows that must be written or removed to turn the
// records of old into those of next.
func differences(old, next *catalog.Catalog) (rows []row, err error) {
	name := func(s string) string { return s }
	for _, part := range []func() ([]row, error){
		func() ([]row, error) {
			return changedRows(kindCluster, old.Clusters, next.Clusters, name, clusterList)
		},
		func() ([]row, error) {
			return changedRows(kindAccount, old.Accounts, next.Accounts, name, accountList)
		},
		func() ([]row, error) {
			return changedRows(kindUser, old.Users, next.Users, name, userList)
		},
		func() ([]row, error) {
			return changedRows(kindAssoc, old.Associations, next.Associations, digits, associationList)
		},
		func() ([]row, error) {
			return changedRows(kindQOS, old.QOS, next.QOS, digits, qosList)
		},
	} {
		list, err := part()
		if err != nil {
			return nil, err
		}
		rows = append(rows, list...)
	}
	if old.LastAssoc != next.LastAssoc {
		rows = append(rows, row{kindLast, kindAssoc, []byte(digits(next.LastAssoc))})
	}
	if old.LastQOS != next.LastQOS {
		rows = append(rows, row{kindLast, kindQOS, []byte(digits(next.LastQOS))})
	}
	return rows, nil
}

func digits(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// changedRows returns rows for the records that differ between old and next.
// Records are never modified, so equal pointers mean equal records.
func changedRows[K comparable, T any](kind string, old, next map[K]*T, key func(K) string,
	list func() listing[T]) (rows []row, err error) {
	for k := range old {
		if next[k] == nil {
			rows = append(rows, row{kind: kind, key: key(k)})
		}
	}
	for k, record := range next {
		if old[k] == record {
			continue
		}
		m := list()
		m.List().Records = codec.Stream[T]{List: []T{*record}}
		c := codec.NewEncoder(recordVersion, nil)
		m.Walk(c)
		if err := c.Finish(); err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", kind, key(k), err)
		}
		rows = append(rows, row{kind, key(k), c.Bytes()})
	}
	return rows, nil
}

// writeRows writes rows in tx.
func writeRows(ctx context.Context, tx *sql.Tx, rows []row) error {
	for _, r := range rows {
		var err error
		if r.value == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM record WHERE kind = ? AND key = ?", r.kind, r.key)
		} else {
			_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO record (kind, key, protocol, value) VALUES (?, ?, ?, ?)",
				r.kind, r.key, uint16(recordVersion), r.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Catalog returns the committed records.
func (s *Store) Catalog() *catalog.Catalog { return s.catalog.Load() }

// Replace replaces the committed records with the records of next, first on
// disk and then in memory. The argument next must be a clone of the result of
// Catalog, with changes. Replace must not be called concurrently.
func (s *Store) Replace(ctx context.Context, next *catalog.Catalog) error {
	rows, err := differences(s.Catalog(), next)
	if err != nil || len(rows) == 0 {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return writeError(err)
	}
	defer tx.Rollback()
	if err := writeRows(ctx, tx, rows); err != nil {
		return writeError(err)
	}
	if err := tx.Commit(); err != nil {
		return writeError(err)
	}
	s.catalog.Store(next)
	return nil
}

// loadCatalog reads the records from the database. If a job's cluster has no
// record, loadCatalog adds one.
func (s *Store) loadCatalog(ctx context.Context) error {
	c, err := s.readCatalog(ctx)
	if err != nil {
		return err
	}
	s.catalog.Store(c)
	names, err := s.Clusters(ctx)
	if err != nil {
		return err
	}
	return s.addClusters(ctx, names)
}

// readCatalog returns the records in the database.
func (s *Store) readCatalog(ctx context.Context) (*catalog.Catalog, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT kind, key, protocol, value FROM record")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	c := catalog.Empty()
	for rows.Next() {
		var kind, key string
		var v uint16
		var value []byte
		if err := rows.Scan(&kind, &key, &v, &value); err != nil {
			return nil, err
		}
		if err := loadRecord(c, kind, key, codec.Version(v), value); err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, key, err)
		}
	}
	return c, rows.Err()
}

// addClusters adds a record for each cluster in names that has none. It ignores
// names that a cluster can't have.
func (s *Store) addClusters(ctx context.Context, names []string) error {
	next := s.Catalog().Clone()
	for _, name := range names {
		if trial := next.Clone(); next.Clusters[name] == nil && trial.AddClusters([]model.Cluster{{Name: name}}) == nil {
			next = trial
		}
	}
	return s.Replace(ctx, next)
}

// loadRecord adds a row to c.
func loadRecord(c *catalog.Catalog, kind, key string, v codec.Version, value []byte) error {
	switch kind {
	case kindCluster:
		return loadInto(c.Clusters, key, v, value, message.AccountingGotClusters, new(message.Clusters))
	case kindAccount:
		return loadInto(c.Accounts, key, v, value, message.AccountingGotAccounts, new(message.Accounts))
	case kindUser:
		return loadInto(c.Users, key, v, value, message.AccountingGotUsers, new(message.Users))
	}
	n := value
	if kind != kindLast {
		n = []byte(key)
	}
	number, err := strconv.ParseUint(string(n), 10, 32)
	switch {
	case err != nil:
		return err
	case kind == kindAssoc:
		return loadInto(c.Associations, uint32(number), v, value, message.AccountingGotAssocs, new(message.Associations))
	case kind == kindQOS:
		return loadInto(c.QOS, uint32(number), v, value, message.AccountingGotQOS, new(message.QOSList))
	case kind == kindLast && key == kindAssoc:
		c.LastAssoc = uint32(number)
	case kind == kindLast && key == kindQOS:
		c.LastQOS = uint32(number)
	}
	return nil
}

func loadInto[K comparable, T any](dst map[K]*T, key K, v codec.Version, value []byte, t message.Type, m listing[T]) error {
	if err := message.DecodeBody(v, t, value, m); err != nil {
		return err
	}
	list := m.List().Records.List
	if len(list) != 1 {
		return errs.New(errs.Invalid, "not exactly one record")
	}
	dst[key] = &list[0]
	return nil
}
