package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/ipc"
	"schedrestd/security"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listenOn listens on path without the checks of schedrestd-config. If
// schedrestd-config is compromised, it can name any path.
func listenOn(path string, o socket.Options) (*Listener, error) {
	list, err := Open(Options{Addresses: []ipc.Listen{{Text: "unix:" + path, Network: ipc.Unix, Path: path}}, Unix: o})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// sharedDir makes a directory that other users can enter.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir := sockettest.Dir(t)
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	must(t, os.Chmod(dir, 0o755))
	return dir
}

// TestUnixRefusals checks that Open refuses unsuitable paths, and that the
// error gives the reason. Package socket tests the rules for the file itself.
func TestUnixRefusals(t *testing.T) {
	open := sharedDir(t)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, path, want string }{
		{"abstract", "@name", "not an absolute path"},
		{"abstract by NUL", "\x00name", "not an absolute path"},
		{"no path", "", "not an absolute path"},
		{"relative", "run/s", "not an absolute path"},
		{"a directory", sharedDir(t) + "/", "not a file name"},
		{"too long", sharedDir(t) + "/" + strings.Repeat("x", 108), "longer than 107"},
		{"no directory", sharedDir(t) + "/no/s", "no such file"},
		{"others may write the directory", open + "/s", "writable by every user"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := listenOn(tt.path, socket.Options{Mode: 0o600})
			if err == nil {
				l.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, hint %q; want %q", err, errs.HintOf(err), tt.want)
			}
		})
	}
}

// listing returns the names and inodes of the files in dir.
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

// stale creates a socket file that no process listens on.
func stale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

// TestUnixModes checks that the owner and mode of a socket are set before a
// client can connect.
func TestUnixModes(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, 0o660, 0o666} {
		t.Run(mode.String(), func(t *testing.T) {
			owner := socket.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
			if owner.UID == 0 {
				owner = socket.Owner{UID: 31234, GID: 31235}
			}
			path := sharedDir(t) + "/s"
			stale(t, path) // replaces a socket file that a parent has left behind
			l, err := listenOn(path, socket.Options{Mode: mode, Owner: &owner})
			if err != nil {
				t.Fatal(err)
			}
			var st unix.Stat_t
			if err := unix.Lstat(path, &st); err != nil {
				t.Fatal(err)
			}
			if got := fs.FileMode(st.Mode & 0o7777); got != mode || st.Uid != owner.UID || st.Gid != owner.GID {
				t.Errorf("mode %o of %d:%d, want %o of %d:%d", got, st.Uid, st.Gid, mode, owner.UID, owner.GID)
			}
			c, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			l.Close()
			if leftovers := listing(t, filepath.Dir(path)); leftovers != "" {
				t.Errorf("left behind: %s", leftovers)
			}
		})
	}
}

// TestDescriptorsAreRefused checks that no client can send a descriptor over a
// connection. It tests both kinds of listener: one that the parent opened, and
// one from a service manager.
func TestDescriptorsAreRefused(t *testing.T) {
	if !security.KernelSince(6, 16) {
		t.Skip("this kernel refuses none")
	}
	own, passed := sharedDir(t)+"/own", sharedDir(t)+"/passed"
	l, err := listenOn(own, socket.Options{Mode: 0o600})
	must(t, err)
	defer l.Close()
	before, err := net.Listen("unix", passed)
	must(t, err)
	defer before.Close()
	f, err := before.(*net.UnixListener).File()
	must(t, err)
	adopted, err := adopt(f)
	must(t, err)
	defer adopted.Close()
	for _, path := range []string{own, passed} {
		c, err := net.Dial("unix", path)
		must(t, err)
		defer c.Close()
		if _, _, err := c.(*net.UnixConn).WriteMsgUnix([]byte("G"), unix.UnixRights(0), nil); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
