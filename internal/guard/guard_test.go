package guard

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// TestOpen creates the file of each case below a directory of mode 0700, and
// opens that file. It checks the content that it reads, or the reason for the
// refusal.
func TestOpen(t *testing.T) {
	self := uint32(os.Geteuid())
	key := Rule{Label: "key file", Owners: []uint32{self}, Secret: true}
	conf := Rule{Label: "configuration", AllowLink: true}
	tests := []struct {
		name  string
		rule  Rule
		build func(t *testing.T, dir string) string
		kind  errs.Kind
		want  string // part of the refusal; empty: accepted
		hint  string
	}{
		{name: "key of mode 0600", rule: key, build: file("k", 0o600)},
		{name: "key of mode 0400", rule: key, build: file("k", 0o400)},
		{name: "key its group may read", rule: key, build: file("k", 0o640), kind: 0},
		{name: "key others may read", rule: key, build: file("k", 0o604), kind: errs.Invalid, want: "lets other users access it", hint: "chmod 0600"},
		{name: "key its group may write", rule: key, build: file("k", 0o660), kind: errs.Invalid, want: "lets other users access it", hint: "chmod 0600"},
		{name: "key of another user", rule: Rule{Label: "key file", Owners: []uint32{self + 7}, Secret: true}, build: file("k", 0o600),
			kind: errs.Invalid, want: "owned by uid", hint: "chown"},
		{name: "an owner is named once", rule: Rule{Label: "key file", Owners: []uint32{self + 7, self + 7, self + 8, self + 7}, Secret: true}, build: file("k", 0o600),
			kind: errs.Invalid, want: fmt.Sprintf("must be owned by uid %d or %d", self+7, self+8)},
		{name: "key behind a link", rule: key, build: link, kind: errs.Invalid, want: "symbolic link", hint: "readlink -f"},
		{name: "key in a directory all may write", rule: key, build: inDir(0o777), kind: errs.Invalid, want: "is writable by every user", hint: "chmod o-w"},
		{name: "key in a sticky directory", rule: key, build: inDir(0o777 | os.ModeSticky), kind: errs.Invalid, want: "is writable by every user", hint: "ls -ld"},
		{name: "absent key in a sticky directory", rule: key, build: absent(0o777 | os.ModeSticky), kind: errs.NotFound, want: "no such file"},
		{name: "absent key in a directory all may write", rule: key, build: absent(0o777), kind: errs.Invalid, want: "is writable by every user", hint: "chmod o-w"},
		{name: "new key in a sticky directory", rule: Rule{Label: "key file", Owners: []uint32{self}, Secret: true, CreateFlags: os.O_WRONLY},
			build: absent(0o777 | os.ModeSticky), kind: errs.Invalid, want: "is writable by every user", hint: "ls -ld"},
		{name: "directory further up all may write", rule: key, build: deeper(0o777), kind: errs.Invalid, want: "is writable by every user"},
		{name: "sticky directory further up", rule: key, build: deeper(0o777 | os.ModeSticky)},
		{name: "absent", rule: key, build: func(_ *testing.T, dir string) string { return dir + "/none" }, kind: errs.NotFound, want: "no such file"},
		{name: "absent directory", rule: key, build: func(_ *testing.T, dir string) string { return dir + "/none/k" }, kind: errs.NotFound, want: "no such file"},
		{name: "file as directory", rule: key, build: func(t *testing.T, dir string) string { return file("k", 0o600)(t, dir) + "/k" },
			kind: errs.Invalid, want: "not a directory"},
		{name: "a directory", rule: key, build: func(_ *testing.T, dir string) string { return dir }, kind: errs.Invalid, want: "not a regular file"},
		{name: "the root", rule: key, build: func(*testing.T, string) string { return "/" }, kind: errs.Invalid, want: "not a regular file"},
		{name: "a named pipe", rule: key, build: func(t *testing.T, dir string) string {
			must(t, syscall.Mkfifo(dir+"/p", 0o600))
			return dir + "/p"
		}, kind: errs.Invalid, want: "not a regular file", hint: "ls -ld"},
		{name: "a device", rule: conf, build: func(*testing.T, string) string { return "/dev/zero" }, kind: errs.Invalid, want: "not a regular file"},
		{name: "configuration all may read", rule: conf, build: file("c", 0o644)},
		{name: "configuration all may write", rule: conf, build: file("c", 0o646), kind: errs.Invalid, want: "lets other users write", hint: "chmod o-w"},
		{name: "configuration in a sticky directory", rule: conf, build: inDir(0o777 | os.ModeSticky)},
		{name: "configuration behind links", rule: conf, build: link},
		{name: "links in a circle", rule: conf, build: func(t *testing.T, dir string) string {
			must(t, os.Symlink("b", dir+"/a"))
			must(t, os.Symlink(dir+"/a", dir+"/b"))
			return dir + "/a"
		}, kind: errs.Invalid, want: "too many symbolic links", hint: "ls -l"},
		{name: "dots after a link", rule: conf, build: func(t *testing.T, dir string) string {
			must(t, os.MkdirAll(dir+"/far/away", 0o700))
			must(t, os.Symlink("far/away", dir+"/near"))
			file("far/c", 0o600)(t, dir)
			return dir + "/near/../c"
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Chmod(dir, 0o700))
			path := test.build(t, dir)
			data, _, err := read(path, test.rule, 100)
			if test.want == "" {
				if err != nil || string(data) != "content" {
					t.Fatalf("got %q, %v", data, err)
				}
				return
			}
			if err == nil || errs.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v (%v), want %v saying %q", err, errs.KindOf(err), test.kind, test.want)
			}
			hint := errs.HintOf(err)
			if !strings.Contains(hint, test.hint) {
				t.Errorf("hint %q, want %q in it", hint, test.hint)
			}
			if strings.HasPrefix(hint, "chown") && self != 0 {
				return
			}
			if out, err := exec.Command("/bin/sh", "-c", hint).CombinedOutput(); err != nil && !strings.Contains(test.want, "links") {
				t.Errorf("pasted: %s: %v\n%s", hint, err, out)
			}
			if strings.HasPrefix(hint, "ch") {
				if _, _, err := read(path, test.rule, 100); err != nil && errs.KindOf(err) != errs.NotFound {
					t.Errorf("after %s: %v", hint, err)
				}
			}
		})
	}
}

// TestExchangedWhileOpening checks that Open never reads the target of a link for
// which the file is exchanged after its name was checked.
func TestExchangedWhileOpening(t *testing.T) {
	dir := t.TempDir()
	key, link, other := dir+"/key", dir+"/link", dir+"/other"
	must(t, os.WriteFile(key, []byte("own"), 0o600))
	must(t, os.WriteFile(other, []byte("other"), 0o600))
	must(t, os.Symlink(other, link))
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, key, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 20000 {
		f, _, err := Open(key, Rule{Label: "key file", Secret: true})
		if err != nil {
			continue
		}
		text, err := io.ReadAll(f)
		f.Close()
		if err != nil || string(text) != "own" {
			t.Fatalf("read %q, %v", text, err)
		}
	}
}

// TestLinkOfAnotherUser checks that Open refuses links that another user
// created in a sticky directory. With such a link, that user could choose the
// file that root reads.
func TestLinkOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make another user's link")
	}
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o777|os.ModeSticky))
	file("c", 0o644)(t, dir)
	must(t, os.Symlink("c", dir+"/l"))
	must(t, os.Lchown(dir+"/l", 65534, 65534))
	if _, _, err := Open(dir+"/l", Rule{Label: "configuration", AllowLink: true}); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("file: got %v, want a refusal", err)
	}
	must(t, os.Mkdir(dir+"/d", 0o755))
	file("d/c", 0o644)(t, dir)
	must(t, os.Symlink("d", dir+"/dl"))
	must(t, os.Lchown(dir+"/dl", 65534, 65534))
	if _, _, err := Open(dir+"/dl/c", Rule{Label: "configuration"}); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("directory: got %v, want a refusal", err)
	}
}

func TestReachable(t *testing.T) {
	t.Setenv("TMPDIR", "/tmp") // others may be unable to enter the user's own
	dir := t.TempDir()
	path := file("k", 0o600)(t, dir)
	for _, test := range []struct {
		mode os.FileMode
		want int
	}{{0o700, 0}, {0o755, 1}} {
		// The warning appears only if other users can enter every directory
		// above the file.
		for d := dir; d != os.TempDir(); d = filepath.Dir(d) {
			must(t, os.Chmod(d, test.mode))
		}
		_, facts, err := Open(path, Rule{Label: "key file", Secret: true})
		if err != nil || len(facts.Warnings) != test.want {
			t.Errorf("directory of mode %o: %q, %v, want %d warnings", test.mode, facts.Warnings, err, test.want)
		}
	}
}

// read opens path and reads it.
func read(path string, rule Rule, maxBytes int64) ([]byte, Facts, error) {
	f, facts, err := Open(path, rule)
	if err != nil {
		return nil, facts, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes))
	return data, facts, err
}

func TestQuote(t *testing.T) {
	for path, want := range map[string]string{"/a/b.key": "/a/b.key", "/a b": "'/a b'", "/it's": `'/it'\''s'`, "": "''", "$(x)": "'$(x)'"} {
		if got := Quote(path); got != want {
			t.Errorf("Quote(%q) = %s, want %s", path, got, want)
		}
	}
}

func file(name string, mode os.FileMode) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte("content"), 0o600))
		must(t, os.Chmod(path, mode))
		return path
	}
}

func link(t *testing.T, dir string) string {
	file("c", 0o600)(t, dir)
	must(t, os.Symlink("c", dir+"/relative"))
	must(t, os.Symlink(dir+"/relative", dir+"/absolute"))
	return dir + "/absolute"
}

func inDir(mode os.FileMode) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		must(t, os.Mkdir(dir+"/d", 0o700))
		must(t, os.Chmod(dir+"/d", mode))
		return file("d/k", 0o600)(t, dir)
	}
}

// absent returns a function that makes a directory with a mode, and returns the
// path of a missing file in it.
func absent(mode os.FileMode) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		path := inDir(mode)(t, dir)
		must(t, os.Remove(path))
		return path
	}
}

func deeper(mode os.FileMode) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		must(t, os.MkdirAll(dir+"/d/e", 0o700))
		must(t, os.Chmod(dir+"/d", mode))
		return file("d/e/k", 0o600)(t, dir)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRests checks IsSettled, also for times in the future. A time far in the
// future was set on purpose, so the file is settled. A time in the near future
// comes from a fast clock, so the file is not settled.
func TestRests(t *testing.T) {
	path := t.TempDir() + "/file"
	if !IsSettled(path, time.Hour) {
		t.Error("a missing file counts as being written")
	}
	must(t, os.WriteFile(path, nil, 0o600))
	for age, want := range map[time.Duration]bool{0: false, time.Minute: false, -time.Minute: false, 2 * time.Hour: true, -2 * time.Hour: true} {
		then := time.Now().Add(-age)
		must(t, os.Chtimes(path, then, then))
		if got := IsSettled(path, time.Hour); got != want {
			t.Errorf("written %s ago: rests is %v", age, got)
		}
	}
}
