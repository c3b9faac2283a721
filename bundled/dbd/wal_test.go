package dbd

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedLog checks what is reported about a write-ahead log with a changed
// bit. SQLite opens each of the damaged databases without an error, and drops
// exactly the transactions that are reported.
func TestDamagedLog(t *testing.T) {
	const transactions = 8
	dir := t.TempDir()
	path := filepath.Join(dir, "db")
	const query = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	db, err := sql.Open("sqlite", path+query)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := db.Exec(statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE t (n INTEGER)")
	exec("INSERT INTO t VALUES (0)")
	exec("PRAGMA wal_checkpoint(RESTART)") // the next transactions overwrite the first ones, some frames of which remain
	for n := 1; n <= transactions; n++ {
		exec("INSERT INTO t VALUES (?)", n)
	}
	main, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const frame = frameHeader + 4096
	frames := (len(wal) - walHeader) / frame
	if frames < transactions || (len(wal)-walHeader)%frame != 0 {
		t.Fatalf("a log of %d bytes", len(wal))
	}
	reopen := func(t *testing.T, wal []byte) (remaining int, logged string) {
		t.Helper()
		copied := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(copied, main, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied+"-wal", wal, 0o600); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		if err := checkLog(copied, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		if kept, _ := filepath.Glob(copied + "-wal.damaged-*"); (len(kept) == 1) != strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("copies %v, logged %s", kept, log.String())
		} else if len(kept) == 1 {
			if b, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(b, wal) {
				t.Errorf("%s: %v", kept[0], err)
			}
		}
		db, err := sql.Open("sqlite", copied+query)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRow("SELECT count(*) FROM t WHERE n > 0").Scan(&remaining); err != nil {
			t.Fatal(err)
		}
		return remaining, log.String()
	}
	if remaining, logged := reopen(t, wal); remaining != transactions || logged != "" {
		t.Errorf("undamaged: %d remain, logged %q", remaining, logged)
	}
	for n := range transactions { // each transaction changes one page
		for _, part := range []struct {
			name   string
			offset int
		}{{"page number", 3}, {"salt", 9}, {"checksum", 20}, {"page", 2000}} {
			t.Run(fmt.Sprintf("%s of frame %d", part.name, n), func(t *testing.T) {
				damaged := bytes.Clone(wal)
				damaged[walHeader+n*frame+part.offset] ^= 4
				remaining, logged := reopen(t, damaged)
				if remaining != n {
					t.Errorf("%d transactions remain, want %d", remaining, n)
				}
				want := fmt.Sprintf("transactions=%d", transactions-n)
				switch dropped := transactions - n; {
				case part.name == "salt" && dropped == 1: // can't be distinguished from a frame that is left over
					want = ""
				case dropped == 1:
					want = "the last change may be lost"
				}
				if !strings.Contains(logged, want) || want == "" && logged != "" {
					t.Errorf("logged %q, want %q", logged, want)
				}
			})
		}
	}
	t.Run("header", func(t *testing.T) {
		damaged := bytes.Clone(wal)
		damaged[17] ^= 1
		if remaining, logged := reopen(t, damaged); remaining != 0 || !strings.Contains(logged, "acknowledged changes are lost") {
			t.Errorf("%d remain, logged %q", remaining, logged)
		}
	})
	t.Run("torn", func(t *testing.T) { // an incomplete transaction was not acknowledged
		for _, size := range []int{0, 10, walHeader, walHeader + 5*frame - 1} {
			if _, logged := reopen(t, wal[:size]); logged != "" {
				t.Errorf("%d bytes: logged %q", size, logged)
			}
		}
	})
}
