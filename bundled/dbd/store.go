package dbd

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // registers the driver "sqlite", which is written in Go

	"schedrestd/become/nss"
	"schedrestd/bundled/dbd/catalog"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/limit"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// A Store is an open SQLite database. It contains jobs and the records of a
// catalog.Catalog. The Catalog is also kept in memory.
type Store struct {
	db      *sql.DB
	lock    *os.File // held while the database is open, so that no other daemon opens it
	catalog atomic.Pointer[catalog.Catalog]

	maxJobs      int
	queryTimeout time.Duration // maximum duration of a query
}

// OpenStore opens the database at path, which must be absolute. If there is no
// database, OpenStore creates one. If the database was written by an older
// release, OpenStore converts it. OpenStore returns an error if another user
// could read or replace the database, or if another program or a newer release
// has written it.
//
// The database uses a write-ahead log with synchronous=FULL. So a commit is on
// disk before it is acknowledged. This is necessary because schedctld deletes
// its own records when it receives the acknowledgement. With
// synchronous=NORMAL, a commit would need no fsync, but a power failure could
// destroy the last batches.
func OpenStore(ctx context.Context, path string, log *slog.Logger) (*Store, error) {
	path, err := prepareFile(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockDatabase(path)
	if err != nil {
		return nil, err
	}
	if err := checkLog(path, log); err != nil {
		lock.Close()
		return nil, err
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "trusted_schema(0)"},
		"_txlock": {"immediate"},
	}.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		lock.Close()
		return nil, errs.Wrap(err, errs.Internal, "database %s", path)
	}
	db.SetMaxIdleConns(limit.DaemonQueries.Total + 1) // connections are kept, because opening one takes several statements
	s := &Store{db: db, lock: lock, maxJobs: maxJobs, queryTimeout: defaultQueryTimeout}
	if err = s.migrate(ctx, log); err == nil {
		err = s.loadCatalog(ctx)
	}
	if err != nil {
		s.Close()
		if dbErr, ok := errors.AsType[*errs.Error](err); ok {
			dbErr.Message = "database " + path + ": " + dbErr.Message
			return nil, dbErr
		}
		return nil, errs.Wrap(err, errs.Invalid, "database %s", path)
	}
	return s, nil
}

// prepareFile checks the database file. If the file does not exist, prepareFile
// creates it so that only its owner can access it. It returns the path of the
// file without symbolic links.
//
// SQLite creates its auxiliary files by path, with the mode of the database
// file. So prepareFile returns an error if another user can write to the
// directory.
func prepareFile(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", errs.New(errs.Invalid, "database %q: not an absolute path", path)
	}
	self := uint32(os.Geteuid())
	trust := guard.Trust{Owners: []uint32{self}, PrivateGroup: nss.PrivateGroup}
	dir, realPath, name, err := guard.Parent(path, guard.Rule{Label: "database", Secret: true, Trust: &trust})
	if errs.KindOf(err) == errs.NotFound {
		return "", errs.New(errs.NotFound, "%v", err).
			WithHint("install -d -o %d -m 0700 %s", self, guard.Quote(filepath.Dir(path)))
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return "", errs.Wrap(err, errs.Internal, "database %s", path)
	}
	if st.Uid != self {
		return "", errs.New(errs.Invalid, "database %s: its directory belongs to uid %d, not to uid %d", path, st.Uid, self).
			WithHint("chown %d %s", self, guard.Quote(filepath.Dir(realPath)))
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
	} else if !errors.Is(err, fs.ErrExist) {
		return "", errs.Wrap(err, errs.Invalid, "database %s", path)
	}
	f, _, err := guard.Open(realPath, guard.Rule{Label: "database", Owners: []uint32{self}, Secret: true})
	if err == nil {
		f.Close()
	}
	return realPath, err
}

// lockDatabase creates the file path + ".lock" and locks it. prepareFile has
// already checked the directory.
func lockDatabase(path string) (*os.File, error) {
	fd, err := unix.Open(path+".lock", unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, errs.Wrap(err, errs.Denied, "lock file %s.lock", path)
	}
	f := os.NewFile(uintptr(fd), path+".lock")
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, errs.New(errs.Conflict, "database %s: in use by another scheddbd", path).
			WithHint("stop the other scheddbd, or set another StorageLoc")
	}
	return f, nil
}

// Close closes the database. It then releases the lock, so that another daemon
// can open the database.
func (s *Store) Close() error {
	defer s.lock.Close()
	return s.db.Close()
}

// upsert is a statement that keeps the latest record of a job. A record with a
// higher number of restarts replaces an earlier one. If the number of restarts
// is the same, a late record does not turn an ended job into a running job.
const upsert = `
INSERT INTO job (cluster, job_id, submit_time, restarts, ended, state, state_reason, exit_code, user_id, group_id,
                 account, name, partition, wckey, array_job_id, array_task_id, het_job_id, het_offset,
                 cpus, node_count, nodes, time_limit, start_time, end_time, used_until, protocol, record, run)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (cluster, job_id, submit_time) DO UPDATE SET
	restarts = excluded.restarts, ended = excluded.ended, state = excluded.state, state_reason = excluded.state_reason,
	exit_code = excluded.exit_code, user_id = excluded.user_id, group_id = excluded.group_id, account = excluded.account,
	name = excluded.name, partition = excluded.partition, wckey = excluded.wckey, array_job_id = excluded.array_job_id,
	array_task_id = excluded.array_task_id, het_job_id = excluded.het_job_id, het_offset = excluded.het_offset,
	cpus = excluded.cpus, node_count = excluded.node_count, nodes = excluded.nodes, time_limit = excluded.time_limit,
	start_time = excluded.start_time, end_time = excluded.end_time, used_until = excluded.used_until,
	protocol = excluded.protocol, record = excluded.record, run = excluded.run
WHERE excluded.restarts > restarts OR excluded.restarts = restarts AND excluded.ended >= ended`

// insertJob stores one job. The insert argument is the prepared statement
// upsert.
func insertJob(ctx context.Context, insert *sql.Stmt, cluster string, j *model.Job) error {
	record, err := encode(j)
	if err != nil {
		return err
	}
	var run []byte
	if j.Run != (model.JobRun{}) {
		if run, err = json.Marshal(j.Run); err != nil {
			return err
		}
	}
	var task any
	if j.ArrayTaskID.Set {
		task = j.ArrayTaskID.Number
	}
	usedUntil := int64(math.MaxInt64)
	if hasEnded(j) {
		usedUntil = int64(j.EndTime)
	}
	_, err = insert.ExecContext(ctx, cluster, j.StepID.JobID, int64(j.SubmitTime), j.RestartCnt, hasEnded(j), uint32(j.State),
		j.StateReason, j.ExitCode, j.UserID, j.GroupID, j.Account, j.Name, j.Partition, j.WCKey, j.ArrayJobID, task,
		j.HetJobID, j.HetJobOffset, j.NumCPUs, j.NumNodes, j.Nodes, j.TimeLimit.Or(math.MaxUint32), int64(j.StartTime), int64(j.EndTime),
		usedUntil, uint16(recordVersion), record, string(run))
	return writeError(err)
}

// Record stores all jobs, or none if it fails. If a job has no cluster name,
// Record uses the given cluster.
func (s *Store) Record(ctx context.Context, cluster string, jobs []model.Job) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return writeError(err)
	}
	defer tx.Rollback()
	statement, err := tx.PrepareContext(ctx, upsert)
	if err != nil {
		return writeError(err)
	}
	defer statement.Close()
	for i := range jobs {
		if err := insertJob(ctx, statement, cmp.Or(jobs[i].Cluster, cluster), &jobs[i]); err != nil {
			return err
		}
	}
	return writeError(tx.Commit())
}

// recordVersion is the protocol version in which new records are stored. Older
// records can still be read, because package message decodes records of all
// versions.
const recordVersion = codec.Newest

// encode encodes the whole job as a message, because some fields have no
// column.
func encode(j *model.Job) ([]byte, error) {
	c := codec.NewEncoder(recordVersion, nil)
	(&message.RecordJobs{Jobs: []model.Job{*j}}).Walk(c)
	return c.Bytes(), c.Finish()
}

// writeError returns the error for a database that can't be written. It returns
// nil if err is nil.
func writeError(err error) error {
	if err == nil {
		return nil
	}
	return &errs.Error{Kind: errs.Unavailable, Number: fault.Database, Err: err,
		Message: "the accounting database can't be written"}
}
