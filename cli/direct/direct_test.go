package direct

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/auth"
	"schedrestd/conf"
	"schedrestd/internal/errs"
)

// write writes a configuration and returns its path.
func write(t *testing.T, lines string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAddresses checks which addresses are used with and without a token. A
// request without a token must never be sent to an address on which the kernel
// can't tell the daemon who sent it.
func TestAddresses(t *testing.T) {
	const both = "ClusterName=c\nSchedctldHost=h(127.0.0.1)\nSchedctldHost=b(127.0.0.2)\nAuthInfo=socket=/s\n"
	const records = "AccountingStorageType=accounting_storage/scheddbd\nAccountingStorageHost=d\nAccountingStorageSocket=/d\n"
	for _, tt := range []struct {
		name, token, lines string
		controllers, dbd   string
		wantErr, wantHint  string
		wantKind           errs.Kind
	}{
		{name: "no token", lines: both + records, controllers: "/s", dbd: "/d"},
		{name: "token", token: "t", lines: both + records, controllers: "/s 127.0.0.1:6817 127.0.0.2:6817", dbd: "/d d:6819"},
		{name: "no accounting", token: "t", lines: both, controllers: "/s 127.0.0.1:6817 127.0.0.2:6817"},
		{name: "default sockets", token: "t", lines: "ClusterName=c\nSchedctldHost=h\nAccountingStorageType=accounting_storage/scheddbd\n", controllers: "/run/schedctld/socket h:6817", dbd: "/run/scheddbd/socket localhost:6819"},
		{name: "accounting on another machine", token: "t", lines: "ClusterName=c\nSchedctldHost=h\nAccountingStorageType=accounting_storage/scheddbd\nAccountingStorageHost=d\n", controllers: "/run/schedctld/socket h:6817", dbd: "d:6819"},
		{name: "no socket", lines: "ClusterName=c\nSchedctldHost=h\n", wantErr: "no socket /run/schedctld/socket of a controller", wantHint: "AuthInfo=socket=PATH", wantKind: errs.Unauthenticated},
		{name: "munge", lines: "ClusterName=c\nSlurmctldHost=h\nAuthType=auth/munge\n", wantErr: "does not support AuthType=auth/munge", wantHint: "export $(scontrol token)", wantKind: errs.Unauthenticated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "no socket" && !isAbsent(conf.ControllerSocket) {
				t.Skip("this machine has a controller")
			}
			cluster, _, err := conf.Read(write(t, tt.lines))
			if err != nil {
				t.Fatal(err)
			}
			list, err := controllers(cluster, tt.token)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || !strings.Contains(errs.HintOf(err), tt.wantHint) || errs.KindOf(err) != tt.wantKind {
					t.Errorf("got %v, hint %s", err, errs.HintOf(err))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got, gotDBD []string
			for _, a := range list {
				got = append(got, a.Address)
			}
			for _, a := range accounting(cluster, tt.token) {
				gotDBD = append(gotDBD, a.Address)
			}
			if strings.Join(got, " ") != tt.controllers || strings.Join(gotDBD, " ") != tt.dbd {
				t.Errorf("%v, %v", got, gotDBD)
			}
		})
	}
}

// TestCause checks that an answer contains the cause of an error, and that
// several requests can be sent at once.
func TestCause(t *testing.T) {
	path := write(t, "ClusterName=c\nSchedctldHost=h(127.0.0.1)\nSchedUser=root\nAuthInfo=socket=/nowhere/s\n")
	c, err := Open(path, func(auth.Rules) (string, error) { return "", nil }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx) }}}
	defer client.CloseIdleConnections()
	done := make(chan struct{})
	for range 3 {
		go func() {
			defer func() { done <- struct{}{} }()
			resp, err := client.Get("http://localhost/sched/v0.0.45/jobs")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			cause, _ := url.QueryUnescape(resp.Header.Get(Cause))
			if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(cause, "unix /nowhere/s: ") || strings.Contains(string(body), "/nowhere") {
				t.Errorf("status %d, cause %q, body %s", resp.StatusCode, cause, body)
			}
		}()
	}
	for range 3 {
		<-done
	}
}
