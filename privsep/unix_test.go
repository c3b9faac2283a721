package privsep

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/security"
)

// self is this process as the one who serves.
func self() service {
	return service{Identity: security.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, root: os.Geteuid() == 0}
}

// other is somebody else who serves, when this process is root.
func other(t *testing.T) service {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: gives a socket to another user")
	}
	return service{Identity: security.Identity{UID: 31234, GID: 31235}, root: true}
}

func listenOn(path string, c Config, who service) (*listener, error) {
	e, err := parseEndpoint("unix:" + path)
	if err != nil {
		return nil, err
	}
	list, err := listenUnix(e, c, who)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// room is a directory of this test's own that others can reach.
func room(t *testing.T) string {
	t.Helper()
	return socketDir(t, t.TempDir(), nil)
}

// TestUnixRefusals: each rule of a UNIX listener, broken.
func TestUnixRefusals(t *testing.T) {
	chmod := func(path string, mode fs.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		make func(t *testing.T, dir string) string // gives the path to listen on
		want string
	}{
		{"abstract", func(*testing.T, string) string { return "@name" }, "not the path of a file"},
		{"abstract by NUL", func(*testing.T, string) string { return "\x00name" }, "not the path of a file"},
		{"no path", func(*testing.T, string) string { return "" }, "not the path of a file"},
		{"relative", func(*testing.T, string) string { return "run/s" }, "must be absolute"},
		{"a directory", func(_ *testing.T, d string) string { return d + "/" }, "name a file"},
		{"too long", func(_ *testing.T, d string) string { return d + "/" + strings.Repeat("x", 108) }, "longer than 107"},
		{"no directory", func(_ *testing.T, d string) string { return d + "/no/s" }, "no such file"},
		{"others may write the directory", func(_ *testing.T, d string) string { chmod(d, 0o777); return d + "/s" }, "written by everybody"},
		{"others may write a directory above", func(t *testing.T, d string) string {
			chmod(d, 0o777)
			if err := os.Mkdir(d+"/in", 0o755); err != nil {
				t.Fatal(err)
			}
			return d + "/in/s"
		}, "written by everybody"},
		{"somebody's directory", func(t *testing.T, d string) string {
			other(t)
			if err := os.Chown(d, 31234, 31235); err != nil {
				t.Fatal(err)
			}
			return d + "/s"
		}, "belongs to uid 31234"},
		{"a file is there", func(t *testing.T, d string) string {
			if err := os.WriteFile(d+"/s", []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			return d + "/s"
		}, "is not a socket"},
		{"a link is there", func(t *testing.T, d string) string {
			if err := os.Symlink("/etc/passwd", d+"/s"); err != nil {
				t.Fatal(err)
			}
			return d + "/s"
		}, "is not a socket"},
		{"somebody's socket is there", func(t *testing.T, d string) string {
			other(t)
			stale(t, d+"/s")
			if err := os.Chown(d+"/s", 41, 41); err != nil {
				t.Fatal(err)
			}
			return d + "/s"
		}, "socket of uid 41"},
		{"another program serves it", func(t *testing.T, d string) string {
			l, err := net.Listen("unix", d+"/s")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			return d + "/s"
		}, "served by another program"},
		{"we serve it", func(t *testing.T, d string) string {
			l, err := listenOn(d+"/s", Config{}, self())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.close)
			return d + "/s"
		}, "another schedrestd serves"},
		{"the lock is a link", func(t *testing.T, d string) string {
			if err := os.Symlink("/etc/passwd", d+"/s.lock"); err != nil {
				t.Fatal(err)
			}
			return d + "/s"
		}, "lock file"},
		{"the lock is somebody's", func(t *testing.T, d string) string {
			other(t)
			if err := os.WriteFile(d+"/s.lock", nil, 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(d+"/s.lock", 41, 41); err != nil {
				t.Fatal(err)
			}
			return d + "/s"
		}, "not a file of this user"},
		{"the lock is a pipe", func(t *testing.T, d string) string {
			if err := unix.Mkfifo(d+"/s.lock", 0o600); err != nil {
				t.Fatal(err)
			}
			return d + "/s"
		}, "lock file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := room(t)
			path := tt.make(t, dir)
			before := listing(t, dir)
			l, err := listenOn(path, Config{}, self())
			if err == nil {
				l.close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if after := listing(t, dir); after != before && tt.name != "a file is there" && tt.name != "a link is there" {
				t.Errorf("a refusal changed the directory from %s to %s", before, after)
			}
		})
	}
}

// listing is what lies in dir, with the inodes.
func listing(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, e := range list {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, e.Name()), &st); err != nil {
			t.Fatal(err)
		}
		s = append(s, fmt.Sprintf("%s:%d", e.Name(), st.Ino))
	}
	return strings.Join(s, " ")
}

// stale leaves a socket that nobody serves.
func stale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

// TestUnixModes: who may connect is settled before anybody can.
func TestUnixModes(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		mode   fs.FileMode
	}{
		{"local alone", Config{Setup: ipc.Setup{Local: true}}, 0o600},
		{"tokens", Config{Setup: ipc.Setup{Local: true, JWT: true}}, 0o666},
		{"as set", Config{Setup: ipc.Setup{JWT: true}, SocketMode: 0o660}, 0o660},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			who := self()
			if os.Geteuid() == 0 {
				who = other(t)
			}
			path := room(t) + "/s"
			stale(t, path) // one that a dead parent left is replaced
			l, err := listenOn(path, tt.config, who)
			if err != nil {
				t.Fatal(err)
			}
			var st unix.Stat_t
			if err := unix.Lstat(path, &st); err != nil {
				t.Fatal(err)
			}
			if got := fs.FileMode(st.Mode & 0o7777); got != tt.mode || st.Uid != who.UID || st.Gid != who.GID {
				t.Errorf("mode %o of %d:%d, want %o of %d:%d", got, st.Uid, st.Gid, tt.mode, who.UID, who.GID)
			}
			c, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			l.close()
			if left := listing(t, filepath.Dir(path)); left != "" {
				t.Errorf("left behind: %s", left)
			}
		})
	}
}

// TestUnixKeepsAnothersFile: on the way out only our own socket is unlinked.
func TestUnixKeepsAnothersFile(t *testing.T) {
	path := room(t) + "/s"
	l, err := listenOn(path, Config{}, self())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("somebody's"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.close()
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "somebody's" {
		t.Errorf("a file in the socket's place was touched: %q %v", raw, err)
	}
}
