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

	"schedrestd/errs"
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
	l := ipc.Listen{Text: "unix:" + path, Network: ipc.Unix, Path: path} // as a captured schedrestd-config might have it
	c.Listen = []ipc.Listen{l}
	if err := checkListen(c); err != nil {
		return nil, err
	}
	list, err := listenUnix(l, c, who)
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

// TestUnixRefusals: what is wrong with the path is told as it is with every address; the
// rules of the file itself are tested where they are kept, in socket.
func TestUnixRefusals(t *testing.T) {
	open := room(t)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, path, want string }{
		{"abstract", "@name", "not an absolute path"},
		{"abstract by NUL", "\x00name", "not an absolute path"},
		{"no path", "", "not an absolute path"},
		{"relative", "run/s", "not an absolute path"},
		{"a directory", room(t) + "/", "not the name of a file"},
		{"too long", room(t) + "/" + strings.Repeat("x", 108), "longer than 107"},
		{"no directory", room(t) + "/no/s", "no such file"},
		{"others may write the directory", open + "/s", "written by everybody"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := listenOn(tt.path, Config{}, self())
			if err == nil {
				l.close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, hint %q; want %q", err, errs.HintOf(err), tt.want)
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
