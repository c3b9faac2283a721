package confserver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/conf"
)

// TestParse checks which lists of controllers are accepted.
func TestParse(t *testing.T) {
	for _, tt := range []struct{ text, want, err string }{
		{"ctl1", "ctl1:6817", ""},
		{"ctl1:7000, ctl2", "ctl1:7000,ctl2:6817", ""},
		{"192.0.2.1:1", "192.0.2.1:1", ""},
		{"[2001:db8::1]", "[2001:db8::1]:6817", ""},
		{"[2001:db8::1]:7", "[2001:db8::1]:7", ""},
		{"unix:/run/sched/../ctl.sock,ctl", "unix:/run/ctl.sock,ctl:6817", ""},
		{"2001:db8::1", "", "want HOST or HOST:PORT"},
		{"ctl:", "", "port"},
		{"ctl:0", "", "port"},
		{"ctl:65536", "", "port"},
		{"ctl:x", "", "port"},
		{"", "", "not the name"},
		{"a,,b", "", "not the name"},
		{":6817", "", "not the name"},
		{"[]", "", "not the name"},
		{"a b", "", "not the name"},
		{"http://ctl", "", "port"}, {"a/b", "", "not the name"},
		{"unix:ctl.sock", "", "not absolute"},
		{strings.Repeat("a,", 16) + "a", "", "at most 16"},
	} {
		list, err := Parse(tt.text)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q: %v, %v; want %q", tt.text, list, err, tt.err)
			}
			continue
		}
		if err != nil || list.String() != tt.want {
			t.Errorf("%q: %v, %v", tt.text, list, err)
		}
		if again, err := Parse(list.String()); err != nil || again.String() != list.String() {
			t.Errorf("%q: parsed again: %v, %v", tt.text, again, err)
		}
	}
}

const text = "ClusterName=c\nSlurmctldHost=h(127.0.0.1)\n"

// newCache returns a cache in a new directory.
func newCache(t *testing.T) Cache {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return Cache{Dir: dir}
}

// TestCache checks that a copy contains the used files, that it replaces the
// previous one, and that each list of controllers has a copy of its own.
func TestCache(t *testing.T) {
	c := newCache(t)
	one, _ := Parse("one")
	two, _ := Parse("two")
	if _, _, err := c.Load(one); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty: %v", err)
	}
	sent := conf.Sent{Origin: "one:6817", Files: map[string]string{"slurm.conf": text, "nodes.conf": "NodeName=n", "oci.conf": "x"}}
	if err := c.Store(one, sent, []string{"slurm.conf", "nodes.conf"}); err != nil {
		t.Fatal(err)
	}
	want := conf.Sent{Origin: "one:6817", Files: map[string]string{"slurm.conf": text, "nodes.conf": "NodeName=n"}}
	got, _, err := c.Load(one)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	if _, _, err := c.Load(two); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another list of controllers: %v", err)
	}
	path := filepath.Join(c.Dir, fileName(one))
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	if _, age, err := c.Load(one); err != nil || age < time.Hour || age > 2*time.Hour {
		t.Errorf("age %v, %v", age, err)
	}
	before, _ := os.Stat(path)
	if err := c.Store(one, sent, []string{"slurm.conf", "nodes.conf"}); err != nil {
		t.Fatal(err)
	}
	if _, age, err := c.Load(one); err != nil || age > time.Hour/2 {
		t.Errorf("confirmed: age %v, %v", age, err)
	}
	if after, _ := os.Stat(path); !os.SameFile(before, after) {
		t.Error("an equal copy was written again")
	}
	withTLS, changed := Cache{Dir: c.Dir, CA: []byte("one")}, Cache{Dir: c.Dir, CA: []byte("two")}
	refusesAll := func(what string, caches ...Cache) {
		t.Helper()
		for _, other := range caches {
			if got, _, err := other.Load(one); err == nil || !strings.Contains(err.Error(), "with another CA, or without TLS") {
				t.Errorf("%s, for CA %q: %v, %v", what, other.CA, got, err)
			}
		}
	}
	refusesAll("fetched without TLS", withTLS, changed)
	if err := withTLS.Store(one, sent, []string{"slurm.conf", "nodes.conf"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := withTLS.Load(one); err != nil {
		t.Error(err)
	}
	refusesAll("fetched with a CA", c, changed)
	sent.Files["slurm.conf"] += "\n"
	if err := c.Store(one, sent, []string{"slurm.conf"}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := c.Load(one); err != nil || got.Files["slurm.conf"] != text+"\n" || len(got.Files) != 1 {
		t.Errorf("replaced: %v, %v", got, err)
	}
	if list, _ := os.ReadDir(c.Dir); len(list) != 1 {
		t.Errorf("files %v", list)
	}
}

// TestCacheRefuses checks that a copy is not used if another user could have
// written it, or if it is damaged.
func TestCacheRefuses(t *testing.T) {
	servers, _ := Parse("one")
	for _, tt := range []struct {
		name  string
		spoil func(dir, path string) error
		want  string
	}{
		{"directory for all", func(dir, _ string) error { return os.Chmod(dir, 0o777) }, "others can write"},
		{"file for the group", func(_, path string) error { return os.Chmod(path, 0o660) }, "others can write"},
		{"no directory", func(dir, _ string) error { return os.RemoveAll(dir) }, "no such file"},
		{"not a directory", func(dir, _ string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) }, "not a directory"},
		{"link out of the directory", func(dir, path string) error {
			return errors.Join(os.Rename(path, dir+"-x"), os.Symlink(dir+"-x", path))
		}, "escapes"},
		{"directory instead", func(_, path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "not a file"},
		{"torn", func(_, path string) error { return os.Truncate(path, 40) }, "unexpected EOF"},
		{"empty", func(_, path string) error { return os.Truncate(path, 0) }, "EOF"},
		{"too long", func(_, path string) error { return os.Truncate(path, maxCopy+1) }, "at most"},
		{"of other controllers", func(_, path string) error {
			return os.WriteFile(path, []byte(`{"servers":"two:6817","origin":"two:6817","files":{"slurm.conf":"x"}}`), 0o600)
		}, "another content"},
		{"without the main file", func(_, path string) error {
			return os.WriteFile(path, []byte(`{"servers":"one:6817","origin":"one:6817"}`), 0o600)
		}, "another content"},
		{"of another user", func(_, path string) error {
			if os.Geteuid() != 0 {
				return errors.ErrUnsupported
			}
			return os.Chown(path, 1, 1)
		}, "does not belong"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache(t)
			if err := c.Store(servers, conf.Sent{Origin: "one:6817", Files: map[string]string{"slurm.conf": text}}, []string{"slurm.conf"}); err != nil {
				t.Fatal(err)
			}
			err := tt.spoil(c.Dir, filepath.Join(c.Dir, fileName(servers)))
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip("needs root")
			}
			if err != nil {
				t.Fatal(err)
			}
			if sent, _, err := c.Load(servers); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, %v; want %q", sent, err, tt.want)
			}
		})
	}
}

// TestCacheAfterCrash checks that a file that a crashed process left does not
// prevent later copies, and that a file of a running process is left alone.
func TestCacheAfterCrash(t *testing.T) {
	c := newCache(t)
	servers, _ := Parse("one")
	sent := conf.Sent{Origin: "one:6817", Files: map[string]string{"slurm.conf": text}}
	temporary := filepath.Join(c.Dir, fileName(servers)+".new")
	if err := os.WriteFile(temporary, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Store(servers, sent, []string{"slurm.conf"}); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Load(servers); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("while another process writes: %v", err)
	}
	old := time.Now().Add(-2 * abandoned)
	if err := os.Chtimes(temporary, old, old); err != nil {
		t.Fatal(err)
	}
	if err := c.Store(servers, sent, []string{"slurm.conf"}); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Load(servers); err != nil {
		t.Error(err)
	}
}
