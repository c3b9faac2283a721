package endpoint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

func TestParse(t *testing.T) {
	tests := []struct {
		in   string
		want Endpoint
		bad  string
		hint string // part of it; "": any
	}{
		{in: "127.0.0.1:6820", want: Endpoint{Network: ipc.TCP, Host: "127.0.0.1", Port: 6820}},
		{in: ":6820", want: Endpoint{Network: ipc.TCP, Port: 6820}},
		{in: "[::1]:0", want: Endpoint{Network: ipc.TCP, Host: "::1"}},
		{in: "[fe80::1%lo]:80", want: Endpoint{Network: ipc.TCP, Host: "fe80::1%lo", Port: 80}},
		{in: "login1:80", want: Endpoint{Network: ipc.TCP, Host: "login1", Port: 80}},
		{in: "unix:/run/s", want: Endpoint{Network: ipc.Unix, Path: "/run/s"}},
		{in: "", bad: "no port"},
		{in: "6820", bad: "needs a colon", hint: "write :6820 for all addresses of this machine, or 127.0.0.1:6820"},
		{in: "https://443", bad: "needs a colon", hint: "write https://:443 for all addresses of this machine, or https://127.0.0.1:443"},
		{in: "65536", bad: "no port"},
		{in: "::1:6820", bad: "too many colons"},
		{in: "localhost:http", bad: "not a number"},
		{in: "localhost:65536", bad: "not a number"},
		{in: "localhost:-1", bad: "not a number"},
		{in: "https://:443", want: Endpoint{Network: ipc.TCP, TLS: true, Port: 443}},
		{in: "https://[2001:db8::1]:443", want: Endpoint{Network: ipc.TCP, TLS: true, Host: "2001:db8::1", Port: 443}},
		{in: "http://localhost:1", bad: "only https://"},
		{in: "https://https://localhost:1", bad: "only https://"},
		{in: "https://localhost:1/", bad: "a path follows"},
		{in: "https://localhost", bad: "no port"},
		{in: "https://unix:/run/s", bad: "a path follows"},
		{in: "unix:run/s", bad: "absolute"},
		{in: "unix:@abstract", bad: "not a file path"},
		{in: "unix:\x00abstract", bad: "not a file path"},
		{in: "unix:", bad: "not a file path"},
		{in: "unix:/run/", bad: "name a file"},
		{in: "unix:/" + strings.Repeat("x", 108), bad: "longer than 107"},
	}
	for _, tt := range tests {
		got, err := Parse(tt.in)
		if tt.bad != "" {
			if err == nil || !strings.Contains(err.Error(), tt.bad) || errs.HintOf(err) == "" || !strings.Contains(errs.HintOf(err), tt.hint) {
				t.Errorf("%q: %v, hint %q; want %q", tt.in, err, errs.HintOf(err), tt.bad)
			}
			continue
		}
		tt.want.Text = tt.in
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", tt.in, err, diff)
		}
	}
}

func TestAddresses(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{":80", []string{"[::]:80"}},
		{"192.0.2.1:80", []string{"192.0.2.1:80"}},
		{"[2001:db8::1]:80", []string{"[2001:db8::1]:80"}},
	}
	for _, tt := range tests {
		e, err := Parse(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		addrs, err := e.Addresses()
		var got []string
		for _, a := range addrs {
			got = append(got, a.String())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.in, err, diff)
		}
	}
	e, _ := Parse("no-such-host.invalid:80")
	if _, err := e.Addresses(); err == nil {
		t.Error("a name that does not exist was resolved")
	}
}
