package demo

import (
	"net"
	"os"
	"strings"
	"testing"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
)

// TestCheckUser checks that the demo does not start for a user whom its daemons
// would refuse.
func TestCheckUser(t *testing.T) {
	for _, tt := range []struct {
		name   string
		user   become.Ucred
		refuse bool
	}{
		{"root", become.Ucred{}, false},
		{"user", become.Ucred{UID: 1000, GID: 1000}, false},
		{"nobody", become.Ucred{UID: 65534, GID: 65534}, true},
		{"group of root", become.Ucred{UID: 1000}, true},
	} {
		if err := checkUser(tt.user); (err != nil) != tt.refuse || tt.refuse && errs.HintOf(err) == "" {
			t.Errorf("%s: %v, hint %q", tt.name, err, errs.HintOf(err))
		}
	}
}

// TestFreeAddress checks the errors for addresses on which the gateway can't
// listen. Each must have a hint.
func TestFreeAddress(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, tt := range []struct {
		name, address string
		want          string // "" for success
		hint          string
		ordinary      bool // only for users without privileges
	}{
		{name: "any port", address: "127.0.0.1:0"},
		{name: "busy", address: busy.Addr().String(), want: "is in use", hint: "LISTEN=127.0.0.1:0"},
		{name: "no host", address: "6820", want: "is not HOST:PORT", hint: "example"},
		{name: "no number", address: "127.0.0.1:80x", want: "listen on 127.0.0.1:80x: lookup", hint: "example"},
		{name: "address of another machine", address: "192.0.2.1:6820", want: "assign requested address", hint: "example"},
		{name: "port of root", address: "127.0.0.1:80", want: "permission denied", hint: "ports below 1024 need root", ordinary: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			firstFree, _ := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
			if tt.ordinary && (os.Geteuid() == 0 || strings.TrimSpace(string(firstFree)) != "1024") {
				t.Skip("this user may bind the port")
			}
			got, err := freeAddress(tt.address)
			if tt.want == "" {
				if _, port, _ := net.SplitHostPort(got); err != nil || port == "0" {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(errs.HintOf(err), tt.hint) {
				t.Errorf("%v, hint %q; want %q, %q", err, errs.HintOf(err), tt.want, tt.hint)
			}
		})
	}
}

// TestHomeModes checks that other users can enter the directory of the demo only if
// they need to, and can't list it or read the jobs' directory.
func TestHomeModes(t *testing.T) {
	dir := sockettest.Dir(t)
	h, err := createHome(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]os.FileMode{h.jobDir(): 0o700}
	if os.Geteuid() == 0 {
		modes[dir] = 0o711
	}
	for path, want := range modes {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", path, info.Mode(), want)
		}
	}
}
