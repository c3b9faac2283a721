package dbd

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// maxJobs is the maximum number of jobs in an answer.
const maxJobs = 50_000

// defaultQueryTimeout limits the duration of a query, including the encoding of
// its answer.
const defaultQueryTimeout = 30 * time.Second

// Jobs finds the jobs that f selects. If owner is set, it finds only jobs of
// that user. It calls visit(n, next) once. n is the number of jobs, and each
// call of next returns one of them. A job is valid until next is called again.
func (s *Store) Jobs(ctx context.Context, f *model.AccountingJobFilter, owner model.Opt[uint32], visit visitor) error {
	return s.find(ctx, visit, func(ctx context.Context, tx *sql.Tx) (query string, args []any, err error) {
		list := conditions(f, owner)
		from, err := cheapest(ctx, tx, list)
		query, args = selection(from, list, f.Flags&model.JobFilterDuplicates != 0, s.maxJobs)
		return query, args, err
	})
}

// JobPage finds the jobs of the page p, in the order of their keys. Otherwise it
// works like Jobs.
func (s *Store) JobPage(ctx context.Context, p *model.AccountingJobPage, owner model.Opt[uint32], visit visitor) error {
	if limit := s.maxJobs; p.Limit == 0 || int64(p.Limit) > int64(limit) {
		return errs.New(errs.Invalid, "a page has at least 1 and at most %d jobs, not %d", limit, p.Limit)
	}
	return s.find(ctx, visit, func(ctx context.Context, tx *sql.Tx) (query string, args []any, err error) {
		list := conditions(&p.AccountingJobFilter, owner)
		from, err := cheapestForPage(ctx, tx, list)
		query, args = pageSelection(from, list, p)
		return query, args, err
	})
}

type visitor = func(n int, next func() (cluster string, j *model.Job, err error)) error

// find calls visit with the jobs whose keys a statement returns. The statement is
// that of selection or pageSelection.
//
// find has a time limit. But a statement can be interrupted only until it has
// returned its first row. So the first statement returns the keys of all
// selected jobs in a single row, and a second statement reads the jobs with
// these keys. Both statements run in one transaction, so they see the same
// jobs.
func (s *Store) find(ctx context.Context, visit visitor,
	statement func(context.Context, *sql.Tx) (query string, args []any, err error)) error {
	const hint = "select fewer jobs by time, user or name"
	errTimeout := errs.New(errs.Timeout, "the query exceeded its time limit of %v", s.queryTimeout).WithHint(hint)
	ctx, cancel := context.WithTimeoutCause(ctx, s.queryTimeout, errTimeout)
	defer cancel()
	err := s.inSnapshot(ctx, func(tx *sql.Tx) error {
		query, args, err := statement(ctx, tx)
		if err != nil {
			return err
		}
		var found, n int
		var keys string
		if err := tx.QueryRowContext(ctx, query, args...).Scan(&found, &n, &keys); err != nil {
			return err
		}
		if found > s.maxJobs {
			return errs.New(errs.Invalid, "the query selects more than %d jobs", s.maxJobs).WithHint(hint)
		}
		rows, err := tx.QueryContext(ctx, selectRecords, keys)
		if err != nil {
			return err
		}
		defer rows.Close()
		return visit(n, func() (string, *model.Job, error) { return nextJob(rows) })
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if dbErr, ok := errors.AsType[*errs.Error](err); ok {
		return dbErr
	}
	return readError(err)
}

// inSnapshot calls f with a transaction that sees a single state of the
// database.
func (s *Store) inSnapshot(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return f(tx)
}

// selection returns an SQL statement that finds the jobs that meet all
// conditions, and the arguments of the statement. The search ends after limit+1
// jobs.
//
// If several of the jobs found belong to the same cluster and have the same
// number, the statement selects only the job that was submitted last. If
// duplicates is set, it selects all jobs found. The statement returns one row:
// the number of jobs found, the number of jobs selected, and the sorted keys of
// the jobs selected.
func selection(from string, list []condition, duplicates bool, limit int) (query string, args []any) {
	where, args := all(list)
	counted := "found"
	if !duplicates {
		counted = "(SELECT id, cluster, job_id, max(submit_time) AS submit_time FROM found GROUP BY cluster, job_id)"
	}
	const order = "submit_time, cluster, job_id"
	query = "WITH found AS MATERIALIZED (SELECT id, cluster, job_id, submit_time FROM " + from +
		" WHERE " + where + " ORDER BY " + order + " LIMIT ?)" +
		" SELECT (SELECT count(*) FROM found), count(*), json_group_array(id ORDER BY " + order + ") FROM " + counted
	return query, append(args, limit+1)
}

// pageSelection is like selection, but the statement selects the jobs of the page
// p, and ends when it has found them.
func pageSelection(from string, list []condition, p *model.AccountingJobPage) (query string, args []any) {
	where, args := all(list)
	if p.Flags&model.JobFilterDuplicates == 0 {
		where += " AND NOT EXISTS (SELECT 1 FROM job AS later WHERE later.cluster = job.cluster AND later.job_id = job.job_id" +
			" AND later.submit_time > job.submit_time AND " + where + ")"
		args = append(args, args...)
	}
	const order = "job_id, cluster, submit_time"
	query = "WITH found AS MATERIALIZED (SELECT id, job_id, cluster, submit_time FROM " + from +
		" WHERE job_id >= ? AND (" + order + ") > (?, ?, ?) AND " + where + " ORDER BY " + order + " LIMIT ?)" +
		" SELECT 0, count(*), json_group_array(id ORDER BY " + order + ") FROM found"
	after := []any{int64(p.After.JobID), int64(p.After.JobID), p.After.Cluster, int64(p.After.Submitted())}
	return query, append(append(after, args...), int64(p.Limit))
}

// all returns the WHERE clause that requires all conditions, and its arguments.
func all(list []condition) (where string, args []any) {
	where = "1"
	for _, c := range list {
		where += " AND " + c.sql
		args = append(args, c.args...)
	}
	return where, args
}

// selectRecords is a statement that selects the jobs with the given keys, in
// the order of the keys.
const selectRecords = "SELECT cluster, protocol, record, run FROM json_each(?) AS key CROSS JOIN job ON job.id = key.value"

// nextJob reads the next row and returns its job.
func nextJob(rows *sql.Rows) (string, *model.Job, error) {
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return "", nil, err
		}
		return "", nil, io.ErrUnexpectedEOF
	}
	var cluster string
	var v uint16
	var record, run []byte
	if err := rows.Scan(&cluster, &v, &record, &run); err != nil {
		return "", nil, err
	}
	j, err := decode(codec.Version(v), record)
	if err == nil && len(run) > 0 {
		err = json.Unmarshal(run, &j.Run)
	}
	return cluster, j, err
}

// decode decodes a record that was stored in protocol version v.
func decode(v codec.Version, record []byte) (*model.Job, error) {
	var m message.RecordJobs
	if err := message.DecodeBody(v, message.AccountingRecordJobs, record, &m); err != nil {
		return nil, err
	}
	if len(m.Jobs) != 1 {
		return nil, errors.New("record does not hold exactly one job")
	}
	return &m.Jobs[0], nil
}

// The functions cheapest and cheapestForPage count jobs up to a limit. The limit
// begins at firstProbe, and is at most lastProbe or lastPageProbe.
const (
	firstProbe    = 100
	lastProbe     = 1_000_000
	lastPageProbe = 10_000
)

// cheapest returns the FROM clause of a query. The clause makes the query read
// the table of jobs through the index of the condition that the fewest jobs
// meet.
//
// SQLite has no statistics about single values. So cheapest counts the jobs
// that meet each condition, up to a limit, and reads only indices to do so. It
// raises the limit until the count for at least one condition is below the
// limit. So the cost of counting is proportional to the cost of the query
// itself.
func cheapest(ctx context.Context, tx *sql.Tx, list []condition) (from string, err error) {
	candidates, from := indexed(list)
	switch {
	case from != "":
		return from, nil
	case len(candidates) == 0:
		return allJobs, nil
	case len(candidates) == 1:
		return candidates[0].from, nil
	}
	if from, err = fewest(ctx, tx, candidates, lastProbe); from == "" {
		from = candidates[0].from
	}
	return from, err
}

// cheapestForPage is like cheapest, but for a page. To read through the index of
// a condition, a query must read and sort all jobs that meet the condition, for
// each page. So if these are many, the query reads the jobs in the order of their
// numbers instead, until the page is full.
func cheapestForPage(ctx context.Context, tx *sql.Tx, list []condition) (from string, err error) {
	candidates, from := indexed(list)
	if from != "" {
		return from, nil
	}
	if from, err = fewest(ctx, tx, candidates, lastPageProbe); from == "" {
		from = byNumber
	}
	return from, err
}

// indexed returns the conditions that have an index. If one of them is met by
// very few jobs, it returns the FROM clause of that one instead.
func indexed(list []condition) (candidates []condition, from string) {
	for _, c := range list {
		if c.from == byID {
			return nil, byID
		}
		if c.from != "" {
			candidates = append(candidates, c)
		}
	}
	return candidates, ""
}

// fewest returns the FROM clause of the condition that the fewest jobs meet. If
// each condition is met by at least maxLimit jobs, it returns "".
func fewest(ctx context.Context, tx *sql.Tx, candidates []condition, maxLimit int) (from string, err error) {
	for limit := firstProbe; limit <= maxLimit; limit *= 10 {
		minCount := limit
		for _, c := range candidates {
			var n int
			query := "SELECT count(*) FROM (SELECT 1 FROM " + c.from + " WHERE " + c.sql + " LIMIT ?)"
			args := append(c.args[:len(c.args):len(c.args)], limit)
			if err := tx.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
				return "", err
			}
			if n < minCount {
				minCount, from = n, c.from
			}
		}
		if from != "" {
			return from, nil
		}
	}
	return "", nil
}

// selectClusters is a statement that selects the names of all clusters that
// have jobs. It searches the index of the table's UNIQUE constraint once for
// each name.
const selectClusters = `WITH RECURSIVE each (name) AS (
	SELECT min(cluster) FROM job UNION ALL
	SELECT (SELECT min(cluster) FROM job WHERE cluster > each.name) FROM each WHERE name IS NOT NULL)
SELECT name FROM each WHERE name IS NOT NULL`

// Clusters returns the names of the clusters that have jobs in the database.
func (s *Store) Clusters(ctx context.Context) (names []string, err error) {
	rows, err := s.db.QueryContext(ctx, selectClusters)
	if err != nil {
		return nil, readError(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, readError(err)
		}
		names = append(names, name)
	}
	return names, readError(rows.Err())
}

// readError returns the error for a database that can't be read.
func readError(err error) error {
	return errs.Wrap(err, errs.Unavailable, "the accounting database can't be read")
}
