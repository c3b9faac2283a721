package portowner

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"schedrestd/internal/sockdiag"
)

func at(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// helper starts another process that listens on listenAddr. If the test runs as
// root, the process has the uid 4711. helper returns the actual address, the
// uid of the process, and a function accept, which makes the process accept one
// connection and then stop listening.
func helper(t *testing.T, listenAddr string) (address string, uid uint32, accept func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelper$")
	cmd.Env = append(os.Environ(), "SOCKDIAG_LISTEN="+listenAddr)
	uid = uint32(os.Geteuid())
	if uid == 0 {
		uid = 4711
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		exe, err := os.Open("/proc/self/exe") // opened here, because only root may be able to reach the test's directory
		if err != nil {
			t.Fatal(err)
		}
		defer exe.Close()
		cmd.Path, cmd.ExtraFiles = "/proc/self/fd/3", []*os.File{exe}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	line := func() string {
		b := make([]byte, 100)
		n, err := out.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b[:n]))
	}
	return line(), uid, func() {
		in.Write([]byte("\n"))
		if reply := line(); reply != "accepted" {
			t.Fatal(reply)
		}
	}
}

// TestHelper is the program of helper.
func TestHelper(t *testing.T) {
	listenAddr := os.Getenv("SOCKDIAG_LISTEN")
	if listenAddr == "" {
		t.Skip("the program of other tests")
	}
	ln, err := net.Listen("tcp", listenAddr)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString(ln.Addr().String() + "\n")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		os.Exit(0)
	}
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	os.Stdout.WriteString("accepted\n")
	os.Stdin.Read(make([]byte, 1))
	nc.Close()
	os.Exit(0)
}

func TestOwners(t *testing.T) {
	for _, listenAddr := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		t.Run(listenAddr, func(t *testing.T) {
			address, uid, accept := helper(t, listenAddr)
			server := at(t, address)
			if server.Addr().IsUnspecified() {
				server = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), server.Port())
			}
			nc, err := net.Dial("tcp", server.String())
			if err != nil {
				t.Fatal(err)
			}
			local := at(t, nc.LocalAddr().String())
			check := func(name string, want uint32, got uint32, err error) {
				t.Helper()
				if err != nil || got != want {
					t.Errorf("%s: uid %d, %v; want %d", name, got, err, want)
				}
			}
			got, err := ListenerUID(server)
			check("listener", uid, got, err)
			got, err = ServerUID(local, server)
			check("server before it accepts", uid, got, err)
			accept()
			got, err = ServerUID(local, server)
			check("server that accepted", uid, got, err)
			got, err = sockdiag.ClientUID(server, local)
			check("client", uint32(os.Geteuid()), got, err)
			nc.Close()
			if got, err := sockdiag.ClientUID(server, local); !errors.Is(err, sockdiag.ErrUnknown) {
				t.Errorf("a client that closed: uid %d, %v", got, err)
			}
		})
	}
}

// TestServerIsWhoAccepted checks that ServerUID returns the uid of the process
// that accepted the connection, even if that process has stopped listening and
// another user listens on the port. Data on the connection still goes to the
// process that accepted it.
func TestServerIsWhoAccepted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes two users")
	}
	address, uid, accept := helper(t, "127.0.0.1:0")
	server := at(t, address)
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	accept()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if got, err := ListenerUID(server); err != nil || got != 0 {
		t.Errorf("listener: uid %d, %v; want root", got, err)
	}
	if got, err := ServerUID(at(t, nc.LocalAddr().String()), server); err != nil || got != uid {
		t.Errorf("server: uid %d, %v; want %d", got, err, uid)
	}
}

func TestLocal(t *testing.T) {
	for text, want := range map[string]bool{"127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"192.0.2.1": false, "2001:db8::1": false} {
		if got, err := IsLocal(netip.MustParseAddr(text)); err != nil || got != want {
			t.Errorf("%s: %t, %v", text, got, err)
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		ip, _ := netip.ParsePrefix(a.String())
		if got, err := IsLocal(ip.Addr()); err != nil || !got {
			t.Errorf("%s, an address of this machine: %t, %v", ip, got, err)
		}
	}
}

func TestNoListener(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := at(t, ln.Addr().String())
	ln.Close()
	if uid, err := ListenerUID(address); !errors.Is(err, sockdiag.ErrUnknown) {
		t.Errorf("uid %d, %v", uid, err)
	}
}

func BenchmarkServer(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	local, remote := netip.MustParseAddrPort(nc.LocalAddr().String()), netip.MustParseAddrPort(nc.RemoteAddr().String())
	for b.Loop() {
		if _, err := ServerUID(local, remote); err != nil {
			b.Fatal(err)
		}
	}
}
