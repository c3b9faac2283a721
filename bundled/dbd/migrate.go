package dbd

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"

	"schedrestd/bundled/dbd/catalog"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// applicationID marks a file as a database of scheddbd. Its bytes are "SCHD".
const applicationID = 0x53434844

// The constant version is the current format of the database. Since format
// jobVersion, the table named job has the current columns and need not be
// converted. Format 3 added the table named record, format 4 the indices that
// ignore case, and format 5 the column named run.
//
// In every format, the table named job has the columns cluster, protocol and
// record, and the column record holds the whole job. So an older table can be
// converted in one step: each job is stored again in the current format.
const (
	version      = 5
	runSince     = 5
	namesSince   = 4
	recordsSince = 3
	jobVersion   = 2
)

// jobTable is the statement that creates the table of jobs. The columns record
// and run contain the whole job. Most other columns exist only for queries. The
// column record is long. It comes after these, so that a query can read them
// without it.
const jobTable = `CREATE TABLE job (
	id            INTEGER PRIMARY KEY,
	cluster       TEXT    NOT NULL,
	job_id        INTEGER NOT NULL,
	submit_time   INTEGER NOT NULL, -- seconds since 1970, like all times; distinguishes jobs with the same number
	restarts      INTEGER NOT NULL,
	ended         INTEGER NOT NULL, -- 0 or 1
	state         INTEGER NOT NULL, -- Slurm's number, flags included
	state_reason  INTEGER NOT NULL,
	exit_code     INTEGER NOT NULL, -- as wait(2) gives it
	user_id       INTEGER NOT NULL,
	group_id      INTEGER NOT NULL,
	account       TEXT    NOT NULL,
	name          TEXT    NOT NULL,
	partition     TEXT    NOT NULL,
	wckey         TEXT    NOT NULL,
	array_job_id  INTEGER NOT NULL, -- 0: not of an array
	array_task_id INTEGER,
	het_job_id    INTEGER NOT NULL, -- 0: not of a heterogeneous job
	het_offset    INTEGER NOT NULL,
	cpus          INTEGER NOT NULL,
	node_count    INTEGER NOT NULL,
	nodes         TEXT    NOT NULL, -- a host list expression
	time_limit    INTEGER NOT NULL, -- minutes; 4294967295: none
	start_time    INTEGER NOT NULL,
	end_time      INTEGER NOT NULL,
	used_until    INTEGER NOT NULL, -- end_time; the largest number until the job has ended
	protocol      INTEGER NOT NULL, -- version that record is in
	record        BLOB    NOT NULL, -- the whole job, as RecordJobs carries it
	run           TEXT    NOT NULL DEFAULT '', -- a model.JobRun in JSON, or empty
	UNIQUE (cluster, job_id, submit_time)
) STRICT`

// jobIndices contains the statements that create the indices for the filters in
// condition.go.
const jobIndices = `
CREATE INDEX job_by_job_id    ON job (job_id);
CREATE INDEX job_by_array     ON job (array_job_id, array_task_id);
CREATE INDEX job_by_het       ON job (het_job_id, het_offset);
CREATE INDEX job_by_user_id   ON job (user_id, submit_time);
CREATE INDEX job_by_group_id  ON job (group_id, submit_time);
CREATE INDEX job_by_name      ON job (name, submit_time);
CREATE INDEX job_by_partition ON job (partition, submit_time);
CREATE INDEX job_by_state     ON job (state & 255, submit_time);
CREATE INDEX job_by_exit_code ON job (exit_code, submit_time);
CREATE INDEX job_by_submit    ON job (submit_time, cluster, job_id);
CREATE INDEX job_by_use       ON job (used_until)`

// nameIndices contains the statements that create the indices for names in which
// case does not matter. Before format 4, they had case.
const nameIndices = `
DROP INDEX IF EXISTS job_by_account;
DROP INDEX IF EXISTS job_by_wckey;
CREATE INDEX job_by_account   ON job (account COLLATE NOCASE, submit_time);
CREATE INDEX job_by_wckey     ON job (wckey COLLATE NOCASE, submit_time)`

// migrate converts the database to the current format, in one transaction.
func (s *Store) migrate(ctx context.Context, log *slog.Logger) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var application, fileVersion, tables int
	err = tx.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).
		Scan(&application, &fileVersion, &tables)
	if err != nil {
		return err
	}
	switch {
	case application != applicationID && (application != 0 || tables > 0):
		return errs.New(errs.Invalid, "belongs to another program")
	case fileVersion > version:
		return errs.New(errs.Invalid, "has version %d, written by a newer release; this one knows versions up to %d",
			fileVersion, version)
	case application == applicationID && fileVersion == version:
		return nil
	}
	mustConvert := tables > 0 && fileVersion < jobVersion
	if mustConvert {
		log.Info("database conversion started", "from", fileVersion, "to", version)
		if _, err := tx.ExecContext(ctx, "ALTER TABLE job RENAME TO older"); err != nil {
			return err
		}
	}
	if tables == 0 || mustConvert {
		if _, err := tx.ExecContext(ctx, jobTable); err != nil {
			return err
		}
	}
	if mustConvert {
		if err := convert(ctx, tx); err != nil {
			return fmt.Errorf("convert from version %d to %d: %w", fileVersion, version, err)
		}
	}
	if tables == 0 || mustConvert {
		if _, err := tx.ExecContext(ctx, jobIndices); err != nil {
			return err
		}
	}
	rest := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, version)
	if fileVersion < namesSince {
		rest += ";" + nameIndices
	}
	if tables > 0 && !mustConvert && fileVersion < runSince {
		rest += "; ALTER TABLE job ADD COLUMN run TEXT NOT NULL DEFAULT ''"
	}
	if _, err := tx.ExecContext(ctx, rest); err != nil {
		return err
	}
	if fileVersion < recordsSince {
		if err := createRecords(ctx, tx); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if !mustConvert {
		return nil
	}
	log.Info("database converted")
	// This shortens the write-ahead log, which is now as long as the database.
	_, err = s.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// createRecords creates the table of records, with those that exist from the
// start.
func createRecords(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, recordTable); err != nil {
		return err
	}
	rows, err := differences(catalog.Empty(), catalog.New())
	if err != nil {
		return err
	}
	return writeRows(ctx, tx, rows)
}

// convert copies the jobs from the old table, which was renamed to "older", to
// the new table. Then it drops the old table.
func convert(ctx context.Context, tx *sql.Tx) error {
	insert, err := tx.PrepareContext(ctx, upsert)
	if err != nil {
		return err
	}
	defer insert.Close()
	for last, more := int64(-1<<63), true; more; {
		more, err = eachOlder(ctx, tx, &last, func(cluster string, j *model.Job) error {
			return insertJob(ctx, insert, cluster, j)
		})
		if err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, "DROP TABLE older")
	return err
}

// eachOlder reads the next batch of jobs from the table named older. It begins
// with the first row whose rowid is greater than *last. It calls each(cluster,
// j) for every job j, and sets *last to the rowid of the last row that it has
// read. It reports whether there were any jobs.
func eachOlder(ctx context.Context, tx *sql.Tx, last *int64,
	each func(cluster string, j *model.Job) error) (more bool, err error) {
	const batch = "SELECT rowid, cluster, protocol, record FROM older WHERE rowid > ? ORDER BY rowid LIMIT 1000"
	rows, err := tx.QueryContext(ctx, batch, *last)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		var cluster string
		var v uint16
		var record []byte
		if err := rows.Scan(last, &cluster, &v, &record); err != nil {
			return false, err
		}
		j, err := decode(codec.Version(v), record)
		if err != nil {
			return false, err
		}
		if err := each(cluster, j); err != nil {
			return false, err
		}
		more = true
	}
	return more, rows.Err()
}
