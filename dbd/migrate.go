package dbd

import (
	"context"
	"fmt"

	"schedrestd/errs"
)

// applicationID marks the file as ours: "SCHD".
const applicationID = 0x53434844

// migrations take the database from one version to the next; its version is how many have
// been applied. A released one is never changed.
var migrations = []string{
	`CREATE TABLE job (
		cluster     TEXT    NOT NULL,
		job_id      INTEGER NOT NULL,
		submit_time INTEGER NOT NULL, -- seconds since 1970, as all times; tells jobs apart whose number came again
		restarts    INTEGER NOT NULL,
		ended       INTEGER NOT NULL, -- 0 or 1
		state       INTEGER NOT NULL, -- Slurm's number, flags included
		exit_code   INTEGER NOT NULL, -- as wait(2) gives it
		user_id     INTEGER NOT NULL,
		group_id    INTEGER NOT NULL,
		account     TEXT    NOT NULL,
		name        TEXT    NOT NULL,
		partition   TEXT    NOT NULL,
		start_time  INTEGER NOT NULL,
		end_time    INTEGER NOT NULL,
		protocol    INTEGER NOT NULL, -- version that record is in
		record      BLOB    NOT NULL, -- the whole job, as RecordJobs carries it
		PRIMARY KEY (cluster, job_id, submit_time)
	) STRICT;
	CREATE INDEX job_by_user ON job (user_id, start_time);
	CREATE INDEX job_by_end  ON job (end_time);`,
}

// migrate brings the database up to the present version, in one transaction.
func (s *Store) migrate(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var application, version, tables int
	if err := tx.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).Scan(&application, &version, &tables); err != nil {
		return err
	}
	switch {
	case application != applicationID && (application != 0 || tables > 0):
		return errs.New(errs.Invalid, "belongs to another program")
	case version > len(migrations):
		return errs.New(errs.Invalid, "has version %d, written by a newer release; this one knows versions up to %d", version, len(migrations))
	case application == applicationID && version == len(migrations):
		return nil
	}
	for i := version; i < len(migrations); i++ {
		if _, err := tx.ExecContext(ctx, migrations[i]); err != nil {
			return fmt.Errorf("migrate to version %d: %w", i+1, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(migrations))); err != nil {
		return err
	}
	return tx.Commit()
}
