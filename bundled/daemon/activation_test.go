package daemon

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
)

// passSockets makes Listen behave as if a service manager had passed sockets to
// this process.
func passSockets(t *testing.T, sockets ...net.Listener) {
	t.Helper()
	var files []*os.File
	for _, ln := range sockets {
		f, err := ln.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	old := passedSockets
	passedSockets = func() ([]*os.File, error) { return files, nil }
	t.Cleanup(func() {
		passedSockets = old
		for _, f := range files {
			f.Close()
		}
	})
}

// newSocket creates a socket in the same way as a service manager.
func newSocket(t *testing.T, network, address string) net.Listener {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

func portOf(ln net.Listener) int { return ln.Addr().(*net.TCPAddr).Port }

// TestPassedSockets checks that the daemon serves sockets from the service
// manager if they match the configuration. When the daemon closes its
// listeners, the sockets must remain, and so must the file of the UNIX socket.
func TestPassedSockets(t *testing.T) {
	dir := sockettest.Dir(t)
	path := filepath.Join(dir, "s")
	tcp, unix := newSocket(t, "tcp", "127.0.0.1:0"), newSocket(t, "unix", path)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, sockets := range map[string][]net.Listener{"both": {tcp, unix}, "TCP": {tcp}} {
		t.Run(name, func(t *testing.T) {
			passSockets(t, sockets...)
			unixPath := path
			if len(sockets) == 1 {
				unixPath = filepath.Join(dir, "own")
			}
			list, err := Listen("localhost", portOf(tcp), Socket{Path: unixPath, Mode: 0o600}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != 2 || list[0].Addr().String() != tcp.Addr().String() || list[1].Addr().String() != unixPath {
				t.Errorf("%v", list)
			}
			if err := Close(list); err != nil {
				t.Error(err)
			}
			for _, ln := range sockets {
				nc, err := net.Dial(ln.Addr().Network(), ln.Addr().String())
				if err != nil {
					t.Errorf("after the end: %v", err)
					continue
				}
				nc.Close()
			}
		})
	}
}

// TestForeignSocketsAreRefused checks that a socket that does not match the
// configuration is refused. The error must name the socket's address and the
// configured one.
func TestForeignSocketsAreRefused(t *testing.T) {
	dir := sockettest.Dir(t)
	path := filepath.Join(dir, "s")
	tcp, unix := newSocket(t, "tcp", "127.0.0.1:0"), newSocket(t, "unix", path)
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		ln   net.Listener
		host string
		port int
		path string
		mode os.FileMode
		want []string
	}{
		{"another port", tcp, "127.0.0.1", 1, "", 0, []string{tcp.Addr().String(), "127.0.0.1:1"}},
		{"another address", tcp, "127.0.0.2", portOf(tcp), "", 0, []string{tcp.Addr().String(), fmt.Sprintf("127.0.0.2:%d", portOf(tcp))}},
		{"another path", unix, "127.0.0.1", 0, filepath.Join(dir, "other"), 0o666, []string{path, filepath.Join(dir, "other")}},
		{"no UNIX socket", unix, "127.0.0.1", 0, "", 0o666, []string{path, "no UNIX socket"}},
		{"too wide a mode", unix, "127.0.0.1", 0, path, 0o600, []string{path, "mode 0666"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			passSockets(t, tt.ln)
			list, err := Listen(tt.host, tt.port, Socket{Path: tt.path, Mode: tt.mode}, quiet)
			if err == nil {
				Close(list)
				t.Fatal("the socket is served")
			}
			for _, text := range tt.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not name %s", err, text)
				}
			}
			if errs.HintOf(err) == "" {
				t.Error("no hint")
			}
		})
	}
}

// TestTakenPort checks that a daemon does not start if its port is in use. The
// error must name the user of the program that uses the port.
func TestTakenPort(t *testing.T) {
	held := newSocket(t, "tcp", "127.0.0.1:0")
	list, err := Listen("127.0.0.1", portOf(held), Socket{}, quiet)
	if err == nil {
		Close(list)
		t.Fatal("two listeners")
	}
	if want := fmt.Sprintf("uid %d", os.Geteuid()); errs.KindOf(err) != errs.Conflict || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if hint := errs.HintOf(err); !strings.Contains(hint, fmt.Sprint(portOf(held))) {
		t.Errorf("hint %q", hint)
	}
}
