package socket_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket"
	"schedrestd/internal/socket/listener"
	"schedrestd/internal/socket/sockettest"
)

// socketDir returns a new directory that is suitable for a socket, whatever the
// umask is.
func socketDir(t *testing.T) string {
	t.Helper()
	d := sockettest.Dir(t)
	for _, d := range []string{filepath.Dir(d), d} {
		must(t, os.Chmod(d, 0o755))
	}
	return d
}

// needRoot skips the test unless it runs as root. It is for tests that change
// the owners of files.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: gives files to another user")
	}
}

// stale creates a socket on which no process listens.
func stale(t *testing.T, path string) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	ln.SetUnlinkOnClose(false)
	must(t, ln.Close())
}

// listing returns the names and inodes of the files in dir.
func listing(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	var s []string
	for _, e := range list {
		var st unix.Stat_t
		must(t, unix.Lstat(filepath.Join(dir, e.Name()), &st))
		s = append(s, fmt.Sprintf("%s:%d", e.Name(), st.Ino))
	}
	return strings.Join(s, " ")
}

// TestModes checks the mode and owner of a new socket that replaces a stale
// one. It also checks that Remove leaves no file behind.
func TestModes(t *testing.T) {
	strangers := &socket.Owner{UID: 31234, GID: 31235}
	for _, tt := range []struct {
		mode  fs.FileMode
		owner *socket.Owner
	}{{0o600, nil}, {0o660, nil}, {0o666, nil}, {0o600, strangers}, {0o666, strangers}} {
		t.Run(fmt.Sprint(tt.mode, tt.owner), func(t *testing.T) {
			path, want := socketDir(t)+"/s", socket.Owner{uint32(os.Geteuid()), uint32(os.Getegid())}
			stale(t, path)
			if tt.owner != nil {
				needRoot(t)
				want = *tt.owner
				must(t, os.Chown(path, int(want.UID), int(want.GID)))
			}
			s, err := socket.Open(path, socket.Options{Mode: tt.mode, Owner: tt.owner})
			must(t, err)
			var st unix.Stat_t
			must(t, unix.Lstat(path, &st))
			if got := fs.FileMode(st.Mode & 0o7777); got != tt.mode || st.Uid != want.UID || st.Gid != want.GID {
				t.Errorf("mode %o of %d:%d, want %o of %v", got, st.Uid, st.Gid, tt.mode, want)
			}
			c, err := net.Dial("unix", path)
			must(t, err)
			c.Close()
			s.Remove()
			s.Remove()
			s.File.Close()
			if leftovers := listing(t, filepath.Dir(path)); leftovers != "" {
				t.Errorf("left behind: %s", leftovers)
			}
		})
	}
}

func TestListen(t *testing.T) {
	path := socketDir(t) + "/s"
	l, err := listener.Listen(path, socket.Options{Mode: 0o600})
	must(t, err)
	if l.Addr().String() != path {
		t.Errorf("address %s", l.Addr())
	}
	client, err := net.Dial("unix", path)
	must(t, err)
	defer client.Close()
	server, err := l.Accept()
	must(t, err)
	server.Close()
	accepted := make(chan error)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	must(t, l.Close())
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("an accept that waited: %v", err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if leftovers := listing(t, filepath.Dir(path)); leftovers != "" {
		t.Errorf("left behind: %s", leftovers)
	}
}

// TestRefusals checks, for each rule of Open, that Open refuses a path that
// breaks the rule.
func TestRefusals(t *testing.T) {
	tests := []struct {
		name string
		path string                             // "": s in the directory
		make func(t *testing.T, d, path string) // nil: creates nothing
		want errs.Kind
		text string
	}{
		{name: "abstract", path: "@x", want: errs.Invalid, text: "not an absolute path"},
		{name: "abstract by NUL", path: "\x00x", want: errs.Invalid, text: "not an absolute path"},
		{name: "relative", path: "x", want: errs.Invalid, text: "not an absolute path"},
		{name: "NUL in it", path: "/tmp/x\x00", want: errs.Invalid, text: "not an absolute path"},
		{name: "a directory", path: "/tmp/", want: errs.Invalid, text: "not a file name"},
		{name: "too long", path: "/tmp/" + strings.Repeat("x", socket.MaxPath-4), want: errs.Invalid, text: "longer than 107"},
		{name: "no directory", path: "/nonexistent/dir/x", want: errs.NotFound, text: "/nonexistent: no such file or directory"},
		{name: "all users may write the directory", want: errs.Invalid, text: "writable by every user",
			make: func(t *testing.T, d, _ string) { must(t, os.Chmod(d, 0o777)) }},
		{name: "all users may write a directory above", want: errs.Invalid, text: "writable by every user",
			make: func(t *testing.T, d, _ string) { must(t, os.Chmod(filepath.Dir(d), 0o777)) }},
		{name: "a group may write the directory", want: errs.Invalid, text: "writable by group 31235",
			make: func(t *testing.T, d, _ string) {
				needRoot(t)
				must(t, os.Chown(d, 0, 31235))
				must(t, os.Chmod(d, 0o775))
			}},
		{name: "somebody's directory", want: errs.Invalid, text: "belongs to uid 31234",
			make: func(t *testing.T, d, _ string) {
				needRoot(t)
				must(t, os.Chown(d, 31234, 31235))
			}},
		{name: "a file is there", want: errs.Invalid, text: "not a socket",
			make: func(t *testing.T, _, path string) { write(t, path) }},
		{name: "a link is there", want: errs.Invalid, text: "not a socket",
			make: func(t *testing.T, _, path string) { must(t, os.Symlink("/dev/null", path)) }},
		{name: "another user's socket is there", want: errs.Invalid, text: "belongs to uid 41",
			make: func(t *testing.T, _, path string) {
				needRoot(t)
				stale(t, path)
				must(t, os.Chown(path, 41, 41))
			}},
		{name: "another program serves it", want: errs.Conflict, text: "another process serves it",
			make: func(t *testing.T, _, path string) {
				ln, err := net.Listen("unix", path)
				must(t, err)
				t.Cleanup(func() { ln.Close() })
			}},
		{name: "one of us serves it", want: errs.Conflict, text: "holds its lock",
			make: func(t *testing.T, _, path string) {
				ln, err := listener.Listen(path, socket.Options{Mode: 0o600})
				must(t, err)
				t.Cleanup(func() { ln.Close() })
			}},
		{name: "the lock is a link", want: errs.Invalid, text: "symbolic link",
			make: func(t *testing.T, _, path string) { must(t, os.Symlink("/tmp/elsewhere", path+".lock")) }},
		{name: "the lock belongs to another user", want: errs.Invalid, text: "not a file of this user",
			make: func(t *testing.T, _, path string) {
				needRoot(t)
				write(t, path+".lock")
				must(t, os.Chown(path+".lock", 41, 41))
			}},
		{name: "the lock is a pipe", want: errs.Invalid, text: "lock file",
			make: func(t *testing.T, _, path string) { must(t, unix.Mkfifo(path+".lock", 0o600)) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := socketDir(t)
			path := tt.path
			if path == "" {
				path = dir + "/s"
			}
			if tt.make != nil {
				tt.make(t, dir, path)
			}
			before := listing(t, dir)
			s, err := socket.Open(path, socket.Options{Mode: 0o600})
			if err == nil {
				s.Remove()
				s.File.Close()
				t.Fatal("listens")
			}
			if errs.KindOf(err) != tt.want || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v %q, want %v with %q", errs.KindOf(err), err, tt.want, tt.text)
			}
			if errs.HintOf(err) == "" {
				t.Errorf("no hint: %v", err)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("a refusal changed the directory from %s to %s", before, after)
			}
		})
	}
}

// TestPrivateGroup checks that Open accepts a directory in which the private
// group of its owner may write.
func TestPrivateGroup(t *testing.T) {
	needRoot(t)
	dir := socketDir(t)
	must(t, os.Chown(dir, 0, 31235))
	must(t, os.Chmod(dir, 0o775))
	var wasCalled bool
	s, err := socket.Open(dir+"/s", socket.Options{Mode: 0o600, PrivateGroup: func(owner, group uint32) bool {
		wasCalled = owner == 0 && group == 31235
		return wasCalled
	}})
	must(t, err)
	s.Remove()
	s.File.Close()
	if !wasCalled {
		t.Error("the user database was not asked about the group")
	}
}

// TestHolder checks who may own a directory in which two daemons have their
// sockets. One daemon runs as root, the other as SchedUser. Open must accept
// the directory if either of these users owns it.
func TestHolder(t *testing.T) {
	needRoot(t)
	const schedUser = 31234
	for name, tt := range map[string]struct {
		above, dir int
		text       string
	}{
		"root's":       {above: 0, dir: 0},
		"SchedUser's":  {above: 0, dir: schedUser},
		"a stranger's": {above: 0, dir: 31299, text: "must belong to uid 0 or 31234"},
		"below a directory that can be moved by SchedUser": {above: schedUser, dir: schedUser, text: "must belong to uid 0"},
	} {
		t.Run(name, func(t *testing.T) {
			above := socketDir(t)
			dir := above + "/run"
			must(t, os.Mkdir(dir, 0o755))
			must(t, os.Chmod(dir, 0o755))
			must(t, os.Chown(above, tt.above, -1))
			must(t, os.Chown(dir, tt.dir, -1))
			s, err := socket.Open(dir+"/s", socket.Options{Mode: 0o600, DirOwner: schedUser})
			if tt.text != "" {
				if err == nil || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("got %v, want %q", err, tt.text)
				}
				return
			}
			must(t, err)
			s.Remove()
			s.File.Close()
		})
	}
	// The hint contains a command. The directory that this command creates must
	// be acceptable to both daemons.
	path := socketDir(t) + "/run/s"
	_, err := socket.Open(path, socket.Options{Mode: 0o600, DirOwner: schedUser})
	if want := "install -d -o 31234 " + filepath.Dir(path); errs.HintOf(err) != want {
		t.Errorf("hint %q, want %q", errs.HintOf(err), want)
	}
}

// TestDirectoryBehindALink checks that the path of the directory may be a
// symbolic link that root or this user created. The socket must be in the
// directory to which the link points.
func TestDirectoryBehindALink(t *testing.T) {
	dir := socketDir(t)
	must(t, os.Mkdir(dir+"/real", 0o755))
	must(t, os.Symlink("real", dir+"/l"))
	l, err := listener.Listen(dir+"/l/s", socket.Options{Mode: 0o600})
	must(t, err)
	defer l.Close()
	if got := l.Addr().String(); got != dir+"/real/s" {
		t.Errorf("listens at %s", got)
	}
}

// TestRemoveLeavesAnothersFile checks that Remove deletes only its own socket.
// If another user has moved the socket away and put a file in its place, Remove
// must not delete this file.
func TestRemoveLeavesAnothersFile(t *testing.T) {
	path := socketDir(t) + "/s"
	l, err := listener.Listen(path, socket.Options{Mode: 0o600})
	must(t, err)
	must(t, os.Rename(path, path+".old"))
	write(t, path)
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

// TestOneAtATime checks many concurrent callers of Open. Only one at a time may
// get the socket, although Open and Remove keep creating and unlinking the lock
// file.
func TestOneAtATime(t *testing.T) {
	path := socketDir(t) + "/s"
	var serving sync.Mutex
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				s, err := socket.Open(path, socket.Options{Mode: 0o600})
				if errs.KindOf(err) == errs.Conflict {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if !serving.TryLock() {
					t.Error("two processes have the same socket")
					return
				}
				s.File.Close()
				serving.Unlock()
				s.Remove()
			}
		})
	}
	wait.Wait()
}

func TestKeepsTheUmask(t *testing.T) {
	before := syscall.Umask(0o027)
	defer syscall.Umask(before)
	l, err := listener.Listen(socketDir(t)+"/s", socket.Options{Mode: 0o666})
	must(t, err)
	l.Close()
	if got := syscall.Umask(0o027); got != 0o027 {
		t.Errorf("umask is %04o", got)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	must(t, os.WriteFile(path, nil, 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
