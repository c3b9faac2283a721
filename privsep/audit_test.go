package privsep

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// FuzzAuditLine: whatever a worker says, a line is one line of JSON that says it back, and shows on a terminal as text.
func FuzzAuditLine(f *testing.F) {
	for _, s := range []string{"", "alice", "a\"b\\c", "\x00\x1f\x7f\n\r\t", "\xff\xc3", "\u2028\u202e\ufeff", "𝄞\U000e0001\U0010ffff", strings.Repeat("é", 600)} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, user, object string) {
		c := &change{id: "r-1", worker: &process{number: 1, pid: 2}, facts: ipc.Connection{UID: ipc.NoID, Addr: object, Listener: user},
			said: &ipc.Intent{User: user, Forwarded: user, UID: ipc.NoID, Object: object}}
		for _, line := range [][]byte{c.intent(time.Now()), c.outcome(time.Now(), endReported, "", &ipc.Outcome{Code: user, Result: object})} {
			if n := strings.Count(string(line), "\n"); n != 1 || line[len(line)-1] != '\n' {
				t.Fatalf("%d line feeds in %q", n, line)
			}
			for _, r := range strings.TrimSuffix(string(line), "\n") {
				if !unicode.IsPrint(r) {
					t.Fatalf("%U in %q", r, line)
				}
			}
			var got struct {
				Worker struct {
					User, Object string
					Forwarded    string `json:"forwarded_for"`
				}
			}
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			for _, pair := range [][2]string{{user, got.Worker.User}, {user, got.Worker.Forwarded}, {object, got.Worker.Object}} {
				want := string([]rune(pair[0])) // each byte that is no UTF-8 is U+FFFD
				if len(pair[0]) <= auditText && pair[1] != want || len(pair[1]) > 3*auditText+3 {
					t.Fatalf("%q came back as %q", pair[0], pair[1])
				}
			}
		}
	})
}

// disk is a file that can be full, or hang.
type disk struct {
	mu      sync.Mutex
	room    int
	text    string
	hang    chan struct{}
	unsure  bool // what is appended next may be there, or not
	reopens int
}

func (d *disk) append(text []byte) (int, error) {
	if d.hang != nil {
		<-d.hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(text), d.room)
	d.text += string(text[:n])
	if d.unsure {
		d.unsure = false
		return 0, errUnsure
	}
	if d.room -= n; n < len(text) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}
func (d *disk) reopen() error { d.mu.Lock(); d.reopens++; d.mu.Unlock(); return nil }
func (d *disk) close()        {}
func (d *disk) has() string   { d.mu.Lock(); defer d.mu.Unlock(); return d.text }
func (d *disk) grow(n int)    { d.mu.Lock(); d.room = n; d.mu.Unlock() }

func testAudit(t *testing.T, d *disk, c Audit, patience time.Duration) *audit {
	t.Helper()
	a, err := newAudit(c, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	a.patience = patience
	go a.write(d)
	return a
}

// leaveFor intends a change and waits for the answer.
func leaveFor(a *audit, text string) bool {
	answer := make(chan bool, 1)
	a.intend([]byte(text), func() []byte { return []byte("unmade " + text) }, func(granted bool) { answer <- granted })
	return <-answer
}

func await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

// TestAuditDiskFull: intents are refused while nothing can be written, outcomes are kept, and written when there is room.
func TestAuditDiskFull(t *testing.T) {
	d := &disk{room: 4}
	a := testAudit(t, d, Audit{}, patience)
	if !leaveFor(a, "one\n") || leaveFor(a, "two\n") {
		t.Fatal("what fits is written, what does not is refused")
	}
	a.settle([]byte("end of one\n"))
	if leaveFor(a, "three\n") {
		t.Error("three was let through")
	}
	d.grow(1000)
	await(t, "the outcome", func() bool { return d.has() == "one\nend of one\n" })
	if !leaveFor(a, "four\n") {
		t.Error("four was refused")
	}
	a.settle([]byte("end of four\n"))
	a.close()
	if want := "one\nend of one\nfour\nend of four\n"; d.has() != want || a.owed != 0 {
		t.Errorf("%q, %d owed", d.has(), a.owed)
	}
}

// TestAuditOpen: changes are let through while nothing can be written, when that was asked for; the log stays bounded.
func TestAuditOpen(t *testing.T) {
	d := &disk{}
	a := testAudit(t, d, Audit{FailOpen: true}, patience)
	for range 3 * mostOwed {
		a.intend([]byte("x\n"), nil, func(granted bool) {
			if !granted {
				t.Error("refused")
			}
			a.settle([]byte("y\n"))
		})
	}
	await(t, "an end to it", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.queue) <= 2*mostOwed && a.ill })
	a.close()
}

// TestAuditHangs: a file that hangs has changes refused in time, and keeps nobody else; what was written after all has a line
// that says that it was not made, and so has what may be on the disk, or not.
func TestAuditHangs(t *testing.T) {
	for _, unsure := range []bool{false, true} {
		d := &disk{room: 1 << 20, hang: make(chan struct{}), unsure: unsure}
		a := testAudit(t, d, Audit{}, 20*time.Millisecond)
		for range 3 {
			if leaveFor(a, "one\n") {
				t.Error("let through")
			}
		}
		close(d.hang)
		await(t, "that it was not made", func() bool { return strings.Contains(d.has(), "unmade one\n") })
		await(t, "the end of all", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.owed == 0 && len(a.queue) == 0 })
		if intents, unmade := strings.Count("\n"+d.has(), "\none\n"), strings.Count(d.has(), "unmade one\n"); intents != unmade {
			t.Errorf("%d intents, %d ends: %q", intents, unmade, d.has())
		}
		a.close()
	}
}

// TestAuditFile: the file is the starter's alone, in a place where nobody else can put another one.
func TestAuditFile(t *testing.T) {
	who := service{root: os.Geteuid() == 0}
	who.UID = 65534
	if !who.root {
		who.UID = uint32(os.Geteuid())
	}
	tests := []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"none yet", func(*testing.T, string) {}, ""},
		{"a file", func(t *testing.T, p string) { succeed(t, os.WriteFile(p, []byte("{}\n"), 0o600)) }, ""},
		{"others may read it", func(t *testing.T, p string) { succeed(t, os.WriteFile(p, nil, 0o600)); succeed(t, os.Chmod(p, 0o640)) }, "lets others in"},
		{"a link", func(t *testing.T, p string) { succeed(t, os.Symlink("/dev/null", p)) }, "symbolic link"},
		{"a directory", func(t *testing.T, p string) { succeed(t, os.Mkdir(p, 0o700)) }, "directory"},
		{"no directory", func(t *testing.T, p string) { succeed(t, os.Remove(filepath.Dir(p))) }, "its directory is not there"},
		{"a named pipe", func(t *testing.T, p string) { succeed(t, unix.Mkfifo(p, 0o600)) }, "not a regular file"},
		{"somebody else's", func(t *testing.T, p string) {
			if !who.root {
				t.Skip("needs root: changes owners")
			}
			succeed(t, os.WriteFile(p, nil, 0o600))
			succeed(t, os.Chown(p, 65534, 65534))
		}, "owned by uid 65534"},
		{"two names", func(t *testing.T, p string) { succeed(t, os.WriteFile(p, nil, 0o600)); succeed(t, os.Link(p, p+"2")) }, "2 names"},
		{"everybody writes the directory", func(t *testing.T, p string) { succeed(t, os.Chmod(filepath.Dir(p), 0o777)) }, "written by everybody"},
		{"and it is sticky", func(t *testing.T, p string) { succeed(t, os.Chmod(filepath.Dir(p), 0o777|os.ModeSticky)) }, "written by everybody"},
		{"the server's directory", func(t *testing.T, p string) {
			if !who.root {
				t.Skip("needs root: changes owners")
			}
			succeed(t, os.Chown(filepath.Dir(p), 65534, 65534))
		}, "uid 65534"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(room(t), "d")
			succeed(t, os.Mkdir(dir, 0o700))
			path := filepath.Join(dir, "log")
			tt.make(t, path)
			sink, err := newAuditFile(Audit{Path: path}, slog.Default(), who)
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || errs.HintOf(err) == "") {
				t.Fatalf("%v, hint %q; want %q", err, errs.HintOf(err), tt.want)
			}
			if err == nil {
				sink.close()
			}
		})
	}
}

// TestAuditTorn: half a line, which a full disk left, is a line of its own when more is written; and a file that was moved
// away is left alone.
func TestAuditTorn(t *testing.T) {
	path := filepath.Join(room(t), "log")
	succeed(t, os.WriteFile(path, []byte("{\"half"), 0o600))
	who := service{root: os.Geteuid() == 0}
	sink, err := newAuditFile(Audit{Path: path, Sync: true}, slog.Default(), who)
	succeed(t, err)
	defer sink.close()
	for range 2 {
		n, err := sink.append([]byte("{}\n"))
		if succeed(t, err); n != 3 {
			t.Errorf("%d bytes, want 3", n)
		}
	}
	succeed(t, os.Rename(path, path+".1"))
	succeed(t, sink.reopen())
	_, err = sink.append([]byte("[]\n"))
	succeed(t, err)
	old, err := os.ReadFile(path + ".1")
	succeed(t, err)
	now, err := os.ReadFile(path)
	succeed(t, err)
	if string(old) != "{\"half\n{}\n{}\n" || string(now) != "[]\n" {
		t.Errorf("%q, %q", old, now)
	}
}

// TestAuditFollows: no line is written to a file that was removed, and one that was moved away is left for the one that has
// the name, as soon as that can be used.
func TestAuditFollows(t *testing.T) {
	path := filepath.Join(room(t), "log")
	log := new(syncBuffer)
	sink, err := newAuditFile(Audit{Path: path}, slog.New(slog.NewTextHandler(log, nil)), service{root: os.Geteuid() == 0})
	succeed(t, err)
	defer sink.close()
	write := func(line string) error { _, err := sink.append([]byte(line)); return err }
	has := func(path, want string) {
		t.Helper()
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s has %q, %v; want %q", filepath.Base(path), text, err, want)
		}
	}
	succeed(t, write("1\n"))
	succeed(t, os.Remove(path))
	succeed(t, write("2\n"))
	has(path, "2\n")
	succeed(t, os.Rename(path, path+".1"))
	succeed(t, os.WriteFile(path, nil, 0o644))
	succeed(t, os.Chmod(path, 0o644))
	succeed(t, write("3\n"))
	has(path+".1", "2\n3\n")
	succeed(t, os.Remove(path+".1"))
	if err := write("4\n"); err == nil || !strings.Contains(err.Error(), "its file was removed") {
		t.Errorf("a line for nobody: %v", err)
	}
	succeed(t, os.Chmod(path, 0o600))
	sink.(*auditFile).looked = time.Time{}
	succeed(t, write("5\n"))
	has(path, "5\n")
	if warned, failed := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=ERROR"); warned != 2 || failed != 1 {
		t.Errorf("%d warnings, %d errors:\n%s", warned, failed, log)
	}
}

// small is a disk with so much room, and more from the second write on.
type small struct {
	room int
	text string
}

func (s *small) Write(b []byte) (int, error) {
	n := min(len(b), s.room)
	s.text, s.room = s.text+string(b[:n]), 100
	if n < len(b) {
		return n, unix.ENOSPC
	}
	return n, nil
}

// TestAuditCutOff: wherever a full disk cuts lines off, those that a reader finds whole are those that count as written.
func TestAuditCutOff(t *testing.T) {
	const two, third = "{1}\n{2}\n", "{3}\n"
	for room := range len(two) {
		s := &small{room: room}
		end := &tail{to: s}
		n, err := end.append([]byte(two))
		if _, again := end.append([]byte(third)); err == nil || again != nil {
			t.Fatalf("%v, %v", err, again)
		}
		var found string
		for line := range strings.Lines(s.text) {
			if strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}\n") {
				found += line
			}
		}
		if n -= n % len(third); found != two[:n]+third {
			t.Errorf("room for %d: %d bytes count, and a reader finds %q in %q", room, n, found, s.text)
		}
	}
	null, err := os.Open(os.DevNull)
	succeed(t, err)
	defer null.Close()
	f := &auditFile{path: os.DevNull, sync: true, file: null, tail: tail{to: &small{room: 5}}} // a device has no disk
	if n, err := f.append([]byte(two)); n != 0 || !errors.Is(err, errUnsure) {
		t.Errorf("what was written and can't be brought to the disk: %d bytes, %v", n, err)
	}
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
