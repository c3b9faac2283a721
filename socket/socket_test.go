package socket

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/errs"
)

func TestListenModeAndRemoval(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, 0o660, 0o666} {
		path := filepath.Join(t.TempDir(), "s")
		l, err := Listen(path, mode)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeSocket|mode {
			t.Errorf("mode %v, %v; want %v", info.Mode(), err, fs.ModeSocket|mode)
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("left behind: %v", err)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed twice: %v", err)
		}
	}
}

func TestListenRefuses(t *testing.T) {
	tests := []struct {
		name string
		path string
		make func(t *testing.T, path string)
		want errs.Kind
		text string
	}{
		{name: "abstract", path: "@x", want: errs.Invalid, text: "not an absolute path"},
		{name: "relative", path: "x", want: errs.Invalid, text: "not an absolute path"},
		{name: "too long", path: "/" + strings.Repeat("x", 120), want: errs.Invalid, text: "longer than"},
		{name: "no directory", path: "/nonexistent/dir/x", want: errs.Invalid, text: "directory"},
		{name: "a file is there", want: errs.Invalid, text: "something else",
			make: func(t *testing.T, path string) { write(t, path) }},
		{name: "a link is there", want: errs.Invalid, text: "something else",
			make: func(t *testing.T, path string) { os.Symlink("/dev/null", path) }},
		{name: "the lock is a link", want: errs.Invalid, text: "lock file",
			make: func(t *testing.T, path string) { os.Symlink("/tmp/elsewhere", path+".lock") }},
		{name: "others may write the directory", want: errs.Invalid, text: "others may write",
			make: func(t *testing.T, path string) { os.Chmod(filepath.Dir(path), 0o777) }},
		{name: "served by another", want: errs.Conflict, text: "another process serves it",
			make: func(t *testing.T, path string) {
				ln, err := net.Listen("unix", path)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { ln.Close() })
			}},
		{name: "served by one of us", want: errs.Conflict, text: "holds its lock",
			make: func(t *testing.T, path string) {
				ln, err := Listen(path, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { ln.Close() })
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := tt.path
			if path == "" {
				path = filepath.Join(t.TempDir(), "s")
			}
			if tt.make != nil {
				tt.make(t, path)
			}
			l, err := Listen(path, 0o600)
			if err == nil {
				l.Close()
				t.Fatal("listens")
			}
			if errs.KindOf(err) != tt.want || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v %q, want %v with %q", errs.KindOf(err), err, tt.want, tt.text)
			}
		})
	}
}

func TestListenReplacesWhatADeadProcessLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	l, err := Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// Somebody moved our socket away and put his own there: it is his to remove.
func TestCloseLeavesAnothersSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	write(t, path)
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

func TestListenKeepsTheUmask(t *testing.T) {
	before := syscall.Umask(0o027)
	defer syscall.Umask(before)
	l, err := Listen(filepath.Join(t.TempDir(), "s"), 0o666)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if got := syscall.Umask(0o027); got != 0o027 {
		t.Errorf("umask is %04o", got)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
