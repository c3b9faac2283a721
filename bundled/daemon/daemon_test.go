package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/rpc/server"
)

var quiet = slog.New(slog.DiscardHandler)

// TestInheritedDescriptorsAreNotPassedOn checks that a file that was open when
// the daemon was started is not open in its children.
func TestInheritedDescriptorsAreNotPassedOn(t *testing.T) {
	if os.Getenv("DAEMON_TEST") == "isolate" {
		probe := func() string {
			out, _ := exec.Command("/bin/sh", "-c", "test -e /proc/self/fd/9 && echo open").Output()
			return string(out)
		}
		if probe() == "" {
			t.Fatal("the probe is not inherited to begin with")
		}
		Program{Serve: func(context.Context, string, *slog.Logger) error {
			if probe() != "" {
				t.Error("a child has descriptor 9")
			}
			return nil
		}}.Run(nil, io.Discard)
		return
	}
	// A shell passes its open descriptors to its children. Go's os/exec does
	// not.
	child := exec.Command("/bin/sh", "-c", `exec 9</etc/passwd; exec "$0" -test.run='^`+t.Name()+`$'`, os.Args[0])
	child.Env = append(os.Environ(), "DAEMON_TEST=isolate")
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestErrorsArePrintedWithHints(t *testing.T) {
	var out strings.Builder
	p := Program{Name: "x", Serve: func(_ context.Context, path string, _ *slog.Logger) error {
		return errs.New(errs.Invalid, "%s is bad\nand worse", path).WithHint("try another")
	}}
	if status := p.Run([]string{"-f", "conf"}, &out); status != 1 {
		t.Errorf("status %d", status)
	}
	if want := "error: conf is bad\nerror: and worse\nhint: try another\n"; out.String() != want {
		t.Errorf("printed %q", out.String())
	}
}

func TestSuper(t *testing.T) {
	super, self := Super(4711), uint32(os.Geteuid())
	for uid, want := range map[uint32]bool{0: true, 4711: true, self: true, self + 1: false} {
		if got := super(uid); got != want {
			t.Errorf("uid %d: %t", uid, got)
		}
	}
}

// TestListenRetries checks that a restart succeeds even if a child of the old
// daemon still holds the port for a moment.
func TestListenRetries(t *testing.T) {
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { held.Close() })
	listeners, err := Listen("127.0.0.1", held.Addr().(*net.TCPAddr).Port, Socket{Path: filepath.Join(sockettest.Dir(t), "s"), Mode: 0o600}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if len(listeners) != 2 {
		t.Errorf("%d listeners", len(listeners))
	}
	if err := Close(listeners); err != nil {
		t.Error(err)
	}
}

// TestDefaultSocket checks that root's daemon makes the directory of the default
// socket, and that an ordinary user's daemon can do without this socket if
// clients can send tokens. A socket with another path is never left out.
func TestDefaultSocket(t *testing.T) {
	dir := filepath.Join(sockettest.Dir(t), "run")
	path := filepath.Join(dir, "s")
	owner := nss.User{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	if err := MakeDirectory(path, "/other", owner); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the directory of another path was made")
	}
	if os.Geteuid() == 0 {
		for range 2 {
			if err := MakeDirectory(path, path, owner); err != nil {
				t.Fatal(err)
			}
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%v, %v", info, err)
		}
		listeners, err := Listen("127.0.0.1", 0, Socket{Path: path, Default: path, Mode: 0o600}, quiet)
		if err != nil || len(listeners) != 2 {
			t.Errorf("%d listeners, %v", len(listeners), err)
		}
		Close(listeners)
		return
	}
	for _, tt := range []struct {
		name   string
		socket Socket
		want   int
	}{
		{"default", Socket{Path: path, Default: path}, 1},
		{"the only method", Socket{Path: path, Default: path, Required: true}, 0},
		{"configured", Socket{Path: path, Default: "/other"}, 0},
	} {
		var log bytes.Buffer
		listeners, err := Listen("127.0.0.1", 0, tt.socket, slog.New(slog.NewTextHandler(&log, nil)))
		if len(listeners) != tt.want || (err == nil) != (tt.want > 0) || strings.Contains(log.String(), "level=WARN msg=\"no UNIX socket") != (err == nil) {
			t.Errorf("%s: %d listeners, %v, logged %s", tt.name, len(listeners), err, log.String())
		}
		Close(listeners)
	}
}

// TestUnitsListenOnDefaultSockets checks that systemd opens the sockets that the
// daemons would open by default.
func TestUnitsListenOnDefaultSockets(t *testing.T) {
	for unit, path := range map[string]string{"schedctld": conf.ControllerSocket, "scheddbd": conf.AccountingSocket} {
		text, err := os.ReadFile("../../deploy/systemd/" + unit + ".socket.in")
		if err != nil || !strings.Contains(string(text), "\nListenStream="+path+"\n") {
			t.Errorf("%s.socket does not listen on %s: %v", unit, path, err)
		}
	}
}

// TestListenFailsAtOnce checks that Listen tries again only if an address is in
// use. After any other error, it must fail immediately.
func TestListenFailsAtOnce(t *testing.T) {
	const documentation = "192.0.2.1" // RFC 5737: no machine has this address
	if listeners, err := Listen(documentation, 0, Socket{}, quiet); errs.KindOf(err) != errs.Invalid {
		t.Errorf("an address of another machine: %d listeners, %v", len(listeners), err)
	}
	for number, want := range map[syscall.Errno]errs.Kind{
		syscall.EADDRINUSE: errs.Conflict, syscall.EADDRNOTAVAIL: errs.Invalid, syscall.EACCES: errs.Invalid,
	} {
		err := explainBind(&net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", number)}, "127.0.0.1:1")
		if errs.KindOf(err) != want {
			t.Errorf("%v: %v", number, err)
		}
	}
}

func TestServeEndsWithItsWork(t *testing.T) {
	listeners, err := Listen("127.0.0.1", 0, Socket{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := Serve(t.Context(), &server.Server{Log: quiet}, listeners, quiet, func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestHarden(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	defer unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	if err := Harden(); err != nil {
		t.Fatal(err)
	}
	if n, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); n != 0 {
		t.Error("can be dumped")
	}
	if mask := unix.Umask(0); mask != 0o077 {
		t.Errorf("umask %o", mask)
	}
}

func TestTickets(t *testing.T) {
	key, err := auth.NewKey(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	errNotVerified := errors.New("not verified")
	keys := Keys{Key: &key, Verify: func(string, string) (server.Identity, error) { return server.Identity{}, errNotVerified }}
	ticket, err := Ticket(key, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := keys.WithTickets()(ticket, ""); err != nil || id.UID != uint32(os.Geteuid()) || id.FromKernel || id.Expires.IsZero() || !id.Ticket {
		t.Errorf("%+v, %v", id, err)
	}
	plain, err := auth.Create(key, ticketUser, time.Minute, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][2]string{"acting for another": {ticket, "root"}, "a plain token of that name": {plain, ""}} {
		if id, err := keys.WithTickets()(args[0], args[1]); !errors.Is(err, errNotVerified) {
			t.Errorf("%s: %+v, %v", name, id, err)
		}
	}
}

// TestCheckFiles checks that a daemon that runs as root accepts a configuration
// file only if the file belongs to root or SchedUser.
func TestCheckFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path := filepath.Join(t.TempDir(), "sched.conf")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for uid, good := range map[int]bool{0: true, 30001: true, 30002: false} {
		if err := os.Chown(path, uid, uid); err != nil {
			t.Fatal(err)
		}
		if err := CheckFiles([]string{path}, 30001); (err == nil) != good {
			t.Errorf("owned by uid %d: %v", uid, err)
		}
	}
}

// TestTCPNetwork checks that the address 0.0.0.0 means IPv4 only.
func TestTCPNetwork(t *testing.T) {
	for address, want := range map[string]string{"0.0.0.0:6817": "tcp4", "[::]:6817": "tcp", "127.0.0.1:6817": "tcp", "head:6817": "tcp", ":6817": "tcp"} {
		if got := tcpNetwork(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
