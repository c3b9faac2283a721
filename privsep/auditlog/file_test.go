package auditlog

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// TestAuditFile checks that only the user who starts the gateway has access to
// the file, and that no other user can put another file in its place.
func TestAuditFile(t *testing.T) {
	o := options(slog.DiscardHandler)
	tests := []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"none yet", func(*testing.T, string) {}, ""},
		{"a file", func(t *testing.T, p string) { succeed(t, os.WriteFile(p, []byte("{}\n"), 0o600)) }, ""},
		{"others may read it", func(t *testing.T, p string) { succeed(t, os.WriteFile(p, nil, 0o600)); succeed(t, os.Chmod(p, 0o640)) }, "lets other users access it"},
		{"a link", func(t *testing.T, p string) { succeed(t, os.Symlink("/dev/null", p)) }, "symbolic link"},
		{"a directory", func(t *testing.T, p string) { succeed(t, os.Mkdir(p, 0o700)) }, "not a regular file"},
		{"no directory", func(t *testing.T, p string) { succeed(t, os.Remove(filepath.Dir(p))) }, "no such file or directory"},
		{"a named pipe", func(t *testing.T, p string) { succeed(t, unix.Mkfifo(p, 0o600)) }, "not a regular file"},
		{"somebody else's", func(t *testing.T, p string) {
			if !o.Root {
				t.Skip("needs root: changes owners")
			}
			succeed(t, os.WriteFile(p, nil, 0o600))
			succeed(t, os.Chown(p, 65534, 65534))
		}, "owned by uid 65534"},
		{"two names", func(t *testing.T, p string) { succeed(t, os.WriteFile(p, nil, 0o600)); succeed(t, os.Link(p, p+"2")) }, "2 hard links"},
		{"every user writes the directory", func(t *testing.T, p string) { succeed(t, os.Chmod(filepath.Dir(p), 0o777)) }, "writable by every user"},
		{"and it is sticky", func(t *testing.T, p string) { succeed(t, os.Chmod(filepath.Dir(p), 0o777|os.ModeSticky)) }, "writable by every user"},
		{"the server's directory", func(t *testing.T, p string) {
			if !o.Root {
				t.Skip("needs root: changes owners")
			}
			succeed(t, os.Chown(filepath.Dir(p), 65534, 65534))
		}, "uid 65534"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(sharedDir(t), "d")
			succeed(t, os.Mkdir(dir, 0o700))
			path := filepath.Join(dir, "log")
			tt.make(t, path)
			file, err := openFile(o, "audit log", path, unix.O_WRONLY|unix.O_APPEND)
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || errs.HintOf(err) == "") {
				t.Fatalf("%v, hint %q; want %q", err, errs.HintOf(err), tt.want)
			}
			if hint := errs.HintOf(err); strings.Contains(hint, "install -d") {
				t.Errorf("hint %q changes the owner of a directory that exists", hint)
			}
			_, missing := os.Stat(dir)
			if hint := errs.HintOf(err); err != nil && strings.Contains(hint, "mkdir") != (missing != nil) {
				t.Errorf("hint %q, for a directory that exists: %t", hint, missing == nil)
			}
			if err == nil {
				file.osFile.Close()
			}
		})
	}
}

// TestAuditFollows checks that no line is written to a file that was removed.
// If the file was moved away, the log must continue in a new file with the old
// name as soon as possible.
func TestAuditFollows(t *testing.T) {
	path := filepath.Join(sharedDir(t), "log")
	log := new(strings.Builder)
	file, err := openFile(options(slog.NewTextHandler(log, nil)), "audit log", path, unix.O_WRONLY|unix.O_APPEND)
	succeed(t, err)
	defer func() { file.osFile.Close() }()
	write := func(line string) error {
		_, err := file.reopenIfMoved(false)
		if err == nil {
			_, err = file.osFile.WriteString(line)
		}
		return err
	}
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
		t.Errorf("a line without a receiver: %v", err)
	}
	succeed(t, os.Chmod(path, 0o600))
	succeed(t, write("5\n"))
	has(path, "5\n")
	if changed, err := file.reopenIfMoved(true); !changed || err != nil {
		t.Errorf("asked to open it again: %t, %v", changed, err)
	}
	succeed(t, write("6\n"))
	has(path, "5\n6\n")
	if warned, failed := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=ERROR"); warned != 2 || failed != 1 {
		t.Errorf("%d warnings, %d errors:\n%s", warned, failed, log)
	}
}

// options returns the options of a Log. If this process is root, workers have a
// different uid from this process.
func options(log slog.Handler) Options {
	o := Options{Root: os.Geteuid() == 0, WorkerUID: 65534, Log: slog.New(log)}
	if !o.Root {
		o.WorkerUID = uint32(os.Geteuid())
	}
	return o
}

// sharedDir returns a directory that only this process's user can write.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	succeed(t, os.Chmod(filepath.Dir(dir), 0o755))
	succeed(t, os.Chmod(dir, 0o755))
	return dir
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestClaimsFile checks that the rules for the audit log also apply to the file
// of Idempotency-Keys, and that this file is opened even without an audit log.
func TestClaimsFile(t *testing.T) {
	o := options(slog.DiscardHandler)
	o.Claims = filepath.Join(sharedDir(t), "keys")
	l, err := Open(o)
	succeed(t, err)
	if l.file != nil {
		t.Error("there is an audit log")
	}
	flags, err := unix.FcntlInt(l.claimsFile.osFile.Fd(), unix.F_GETFL, 0)
	if succeed(t, err); flags&(unix.O_ACCMODE|unix.O_APPEND) != unix.O_RDWR {
		t.Errorf("opened with %#x", flags)
	}

	succeed(t, os.Chmod(o.Claims, 0o644))
	if _, err := Open(o); err == nil || !strings.HasPrefix(err.Error(), "idempotency file "+o.Claims) || errs.HintOf(err) == "" {
		t.Errorf("%v, hint %q", err, errs.HintOf(err))
	}
}
