package dbd

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

var quiet = slog.New(slog.DiscardHandler)

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := OpenStore(context.Background(), path, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// storeFile returns a path at which a new database can be created.
func storeFile(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "jobs.sqlite")
}

// jobs returns the contents of the database, sorted by key.
func jobs(t testing.TB, s *Store) (all []model.Job) {
	t.Helper()
	rows, err := s.db.Query("SELECT protocol, record FROM job ORDER BY cluster, job_id, submit_time")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var v uint16
		var record []byte
		if err := rows.Scan(&v, &record); err != nil {
			t.Fatal(err)
		}
		var m message.RecordJobs
		if err := message.DecodeBody(codec.Version(v), message.AccountingRecordJobs, record, &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Jobs...)
	}
	return all
}

func job(id uint32, submitted model.Time, state model.JobState) model.Job {
	return model.Job{StepID: model.StepID{JobID: id}, SubmitTime: submitted, State: state, Name: "job \xff", UserID: 1000, Detailed: true,
		WorkDir: "/home/ann", Command: "sleep"}
}

func TestRecord(t *testing.T) {
	pending, running, failed := job(1, 100, model.JobPending), job(1, 100, model.JobRunning), job(1, 100, model.JobFailed)
	restarted := job(1, 100, model.JobRunning)
	restarted.RestartCnt = 1
	reused := job(1, 900, model.JobPending)
	tests := []struct {
		name    string
		batches [][]model.Job
		want    []model.Job
	}{
		{name: "one", batches: [][]model.Job{{pending}}, want: []model.Job{pending}},
		{name: "the same batch twice", batches: [][]model.Job{{pending, job(2, 100, 1)}, {pending, job(2, 100, 1)}},
			want: []model.Job{pending, job(2, 100, 1)}},
		{name: "the last word counts", batches: [][]model.Job{{pending}, {running}, {failed}}, want: []model.Job{failed}},
		{name: "several words in one batch", batches: [][]model.Job{{pending, running, failed}}, want: []model.Job{failed}},
		{name: "an old word after the last", batches: [][]model.Job{{failed}, {running}, {pending}}, want: []model.Job{failed}},
		{name: "a later run after the last word", batches: [][]model.Job{{failed}, {restarted}}, want: []model.Job{restarted}},
		{name: "an earlier run after a later one", batches: [][]model.Job{{restarted}, {failed}}, want: []model.Job{restarted}},
		{name: "a number that came again", batches: [][]model.Job{{failed}, {reused}}, want: []model.Job{failed, reused}},
		{name: "none", batches: [][]model.Job{{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, storeFile(t))
			for _, batch := range tt.batches {
				if err := s.Record(context.Background(), "c1", batch); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, jobs(t, s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecordKeepsClustersApart(t *testing.T) {
	s := open(t, storeFile(t))
	named := job(1, 100, model.JobRunning)
	named.Cluster = "other"
	for _, j := range []model.Job{job(1, 100, model.JobRunning), named} {
		if err := s.Record(context.Background(), "c1", []model.Job{j}); err != nil {
			t.Fatal(err)
		}
	}
	if got := jobs(t, s); len(got) != 2 {
		t.Errorf("%d jobs", len(got))
	}
}

func TestStoreSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a name?with%20 signs#.sqlite")
	s := open(t, path)
	if err := s.Record(context.Background(), "c1", []model.Job{job(1, 100, model.JobRunning)}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	s.Close()
	if got := jobs(t, open(t, path)); len(got) != 1 {
		t.Errorf("%d jobs", len(got))
	}
}

// TestCommitIsDurable checks the settings that make SQLite write a commit to
// disk before the jobs are acknowledged.
func TestCommitIsDurable(t *testing.T) {
	s := open(t, storeFile(t))
	var mode string
	var synchronous int
	const query = "SELECT (SELECT journal_mode FROM pragma_journal_mode), (SELECT synchronous FROM pragma_synchronous)"
	if err := s.db.QueryRow(query).Scan(&mode, &synchronous); err != nil {
		t.Fatal(err)
	}
	if mode != "wal" || synchronous != 2 {
		t.Errorf("journal_mode %s, synchronous %d", mode, synchronous)
	}
}

func TestOpenStoreRefuses(t *testing.T) {
	run := func(t *testing.T, path, statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
		os.Chmod(path, 0o600)
	}
	tests := []struct {
		name string
		make func(t *testing.T, path string)
		path string
		text string
	}{
		{name: "relative path", path: "x.sqlite", text: "absolute"},
		{name: "no directory", path: "/nonexistent/x.sqlite", text: "no such file"},
		{name: "others may read it", text: "lets other users access it",
			make: func(t *testing.T, path string) { os.WriteFile(path, nil, 0o644); os.Chmod(path, 0o644) }},
		{name: "a link", text: "link", make: func(t *testing.T, path string) { os.Symlink("/dev/null", path) }},
		{name: "another program's", text: "another program", make: func(t *testing.T, path string) { run(t, path, "CREATE TABLE x (y)") }},
		{name: "another program's, marked", text: "another program",
			make: func(t *testing.T, path string) { run(t, path, "PRAGMA application_id = 7") }},
		{name: "a newer release's", text: "newer release", make: func(t *testing.T, path string) {
			run(t, path, "PRAGMA application_id = 0x53434844; PRAGMA user_version = 99")
		}},
		{name: "no database", text: "not a database", make: func(t *testing.T, path string) {
			os.WriteFile(path, []byte(strings.Repeat("hello, world. ", 100)), 0o600)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := tt.path
			if path == "" {
				path = storeFile(t)
				tt.make(t, path)
			}
			s, err := OpenStore(context.Background(), path, quiet)
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if k := errs.KindOf(err); !strings.Contains(err.Error(), tt.text) || k == errs.Internal {
				t.Errorf("%v %q, want %q", k, err, tt.text)
			}
		})
	}
}

// TestRecordIntoAClosedStore checks the error for a database that can't be
// written. After this error schedctld must try again.
func TestRecordIntoAClosedStore(t *testing.T) {
	s := open(t, storeFile(t))
	s.Close()
	if err := s.Record(context.Background(), "c1", []model.Job{job(1, 1, 0)}); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("got %v", err)
	}
}

// TestNoFileInUnsafeDirectory checks that OpenStore creates no file before it
// has checked the directory.
func TestNoFileInUnsafeDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{"everybody's directory": dir}
	if os.Getuid() == 0 {
		otherDir := t.TempDir()
		if err := os.Chown(otherDir, 54321, 54321); err != nil {
			t.Fatal(err)
		}
		refused["another user's directory"] = otherDir
	}
	for name, dir := range refused {
		if s, err := OpenStore(context.Background(), filepath.Join(dir, "jobs.sqlite"), quiet); err == nil {
			s.Close()
			t.Errorf("%s: opened", name)
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("%s: %v was created", name, entries)
		}
	}
}
