package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// TestTrust checks whether directories, and programs in them, are trusted.
func TestTrust(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: changes owners")
	}
	private := func(owner, group uint32) bool { return owner == group }
	here := func(_ *testing.T, d string) string { return d }
	owned := func(uid, gid int, mode os.FileMode) func(*testing.T, string) string {
		return func(t *testing.T, d string) string {
			must(t, os.Chown(d, uid, gid))
			must(t, os.Chmod(d, mode))
			return d
		}
	}
	linked := func(uid int, mode os.FileMode) func(*testing.T, string) string {
		return func(t *testing.T, d string) string {
			at := t.TempDir()
			must(t, os.Chmod(at, mode))
			must(t, os.Symlink(d, at+"/l"))
			must(t, os.Lchown(at+"/l", uid, uid))
			return at + "/l"
		}
	}
	below := func(make func(*testing.T, string) string) func(*testing.T, string) string {
		return func(t *testing.T, d string) string {
			must(t, os.Mkdir(d+"/in", 0o755))
			return make(t, d) + "/in"
		}
	}
	tests := []struct {
		name  string
		make  func(t *testing.T, dir string) string // returns the directory
		trust Trust
		want  string
		hint  string
	}{
		{"plain", here, Trust{Owners: []uint32{}}, "", ""},
		{"sticky", owned(0, 0, 0o777|os.ModeSticky), Trust{Owners: []uint32{}}, "", ""},
		{"writable by every user", owned(0, 0, 0o777), Trust{}, "writable by every user", "chmod o-w"},
		{"all users may write one above", below(owned(0, 0, 0o777)), Trust{}, "writable by every user", "chmod o-w"},
		{"a group writes", owned(0, 1234, 0o775), Trust{}, "writable by group 1234", "chmod g-w"},
		{"a group writes one above", below(owned(0, 1234, 0o775)), Trust{}, "writable by group 1234", "chmod g-w"},
		{"root's group writes", owned(0, 0, 0o775), Trust{}, "", ""},
		{"a private group writes", owned(77, 77, 0o775), Trust{PrivateGroup: private}, "", ""},
		{"a stranger's", owned(77, 77, 0o755), Trust{Owners: []uint32{5}}, "belongs to uid 77, must belong to uid 0 or 5", "chown"},
		{"another user's one above", below(owned(77, 77, 0o755)), Trust{Owners: []uint32{5}}, "belongs to uid 77", "chown"},
		{"another user's, and sticky", owned(77, 77, 0o777|os.ModeSticky), Trust{Owners: []uint32{5}}, "belongs to uid 77", "chown"},
		{"another user's that others can't enter", owned(77, 77, 0o700), Trust{Owners: []uint32{5}}, "belongs to uid 77", "chown"},
		{"an owner's", owned(77, 77, 0o755), Trust{Owners: []uint32{77}}, "", ""},
		{"of any user", owned(77, 77, 0o755), Trust{}, "", ""},
		{"the server's", owned(77, 77, 0o755), Trust{ForbiddenOwners: []uint32{77}}, "which serves requests", "chown"},
		{"through a link", linked(0, 0o755), Trust{Owners: []uint32{}}, "", ""},
		{"through a link to a directory that all users may write", func(t *testing.T, d string) string {
			return linked(0, 0o755)(t, owned(0, 0, 0o777)(t, d))
		}, Trust{}, "writable by every user", "chmod o-w"},
		{"a link in a directory that all users may write", linked(0, 0o777), Trust{}, "writable by every user", "chmod o-w"},
		{"another user's link", linked(77, 0o777|os.ModeSticky), Trust{}, "symbolic link", ""},
		{"nothing there", func(_ *testing.T, d string) string { return d + "/no" }, Trust{}, "/d/no: no such file", ""},
		{"a file there", func(t *testing.T, d string) string { return file("f", 0o644)(t, d) }, Trust{}, "/d/f: not a directory", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := filepath.Join(t.TempDir(), "d")
			must(t, os.Mkdir(d, 0o755))
			path := tt.make(t, d)
			judge := func(what string, err error) {
				t.Helper()
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || !strings.Contains(errs.HintOf(err), tt.hint) {
					t.Errorf("%s: got %v, hint %q; want %q, %q", what, err, errs.HintOf(err), tt.want, tt.hint)
				}
				if out, err := exec.Command("/bin/sh", "-nc", errs.HintOf(err)).CombinedOutput(); err != nil || strings.Contains(errs.HintOf(err), ", or") {
					t.Errorf("pasted: %v\n%s", err, out)
				}
			}
			dir, real, name, err := Parent(path+"/new", Rule{Label: "socket", Trust: &tt.trust})
			judge("directory", err)
			if err == nil {
				defer dir.Close()
				var a, b unix.Stat_t
				if unix.Fstat(int(dir.Fd()), &a) != nil || unix.Stat(filepath.Dir(real), &b) != nil || a.Ino != b.Ino || a.Dev != b.Dev {
					t.Errorf("the descriptor is not of the directory of %s", real)
				}
				if name != "new" || filepath.Base(real) != "new" {
					t.Errorf("name %q in %q", name, real)
				}
			}
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				file("program", 0o711)(t, path)
			}
			f, _, err := Open(path+"/program", Rule{Label: "worker", Execute: true, Trust: &tt.trust})
			judge("program", err)
			if err == nil {
				f.Close()
			}
		})
	}
}

// TestTrustedFile checks that the rules for a directory also apply to a program
// in it, and that the program need not be readable.
func TestTrustedFile(t *testing.T) {
	self := uint32(os.Geteuid())
	tests := []struct {
		name  string
		trust Trust
		build func(*testing.T, string) string
		root  bool
		want  string
	}{
		{name: "readable by no user", build: file("p", 0o111)},
		{name: "writable by every user", build: file("p", 0o757), want: "lets other users write it"},
		{name: "behind a link", build: link, want: "symbolic link"},
		{name: "a directory", build: func(_ *testing.T, d string) string { return d }, want: "not a regular file"},
		{name: "the server's", trust: Trust{ForbiddenOwners: []uint32{self}}, build: file("p", 0o755), want: "which serves requests"},
		{name: "a group writes", root: true, want: "it is writable by group 77", build: func(t *testing.T, d string) string {
			p := file("p", 0o775)(t, d)
			must(t, os.Chown(p, 0, 77))
			return p
		}},
		{name: "a stranger's", root: true, trust: Trust{Owners: []uint32{}}, want: "it belongs to uid 77, must belong to uid 0", build: func(t *testing.T, d string) string {
			p := file("p", 0o755)(t, d)
			must(t, os.Chown(p, 77, 0))
			return p
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.root && self != 0 {
				t.Skip("needs root: changes owners")
			}
			dir := t.TempDir()
			must(t, os.Chmod(dir, 0o755))
			tt.trust.PrivateGroup = func(uint32, uint32) bool { return self != 0 }
			f, _, err := Open(tt.build(t, dir), Rule{Label: "worker", Execute: true, Trust: &tt.trust})
			if err == nil {
				f.Close()
			}
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || errs.KindOf(err) != errs.Invalid) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestParentNames checks that a path must end with the name of a file, not with
// "/", "." or "..". Otherwise a lock or a socket would not be in the directory
// that was checked.
func TestParentNames(t *testing.T) {
	for _, path := range []string{"", "/", "/tmp/", "/tmp/.", "/tmp/.."} {
		if dir, _, _, err := Parent(path, Rule{Label: "socket"}); err == nil || !strings.Contains(err.Error(), "not a file name") {
			t.Errorf("%q: %v, %v", path, dir, err)
		}
	}
	d := t.TempDir()
	must(t, os.MkdirAll(d+"/far/away", 0o700))
	must(t, os.Symlink("far/away", d+"/near"))
	dir, real, _, err := Parent(d+"/near/../s", Rule{Label: "socket"})
	if err != nil || !strings.HasSuffix(real, "/far/s") {
		t.Fatalf("dots after a link: %s, %v", real, err)
	}
	dir.Close()
}
