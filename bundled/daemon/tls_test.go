package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/rpc/tlsconn/tlstest"
)

// TestReadTLS checks which files of certificates and keys a daemon accepts.
func TestReadTLS(t *testing.T) {
	ca := tlstest.NewCA(t)
	chain, key := tlstest.EncodePEM(t, ca.Issue(t))
	_, other := tlstest.EncodePEM(t, ca.Issue(t))
	tests := []struct {
		name       string
		chain, key []byte // nil for no file
		mode       os.FileMode
		dirMode    os.FileMode
		problem    string
	}{
		{name: "right", chain: chain, key: key, mode: 0o600, dirMode: 0o755},
		{name: "readable for a group", chain: chain, key: key, mode: 0o640, dirMode: 0o755},
		{name: "readable for all users", chain: chain, key: key, mode: 0o644, dirMode: 0o755, problem: "lets other users access it"},
		{name: "in a directory of all users", chain: chain, key: key, mode: 0o600, dirMode: 0o777, problem: "writable by every user"},
		{name: "no certificate", key: key, mode: 0o600, dirMode: 0o755, problem: "ctld_cert.pem: no such file"},
		{name: "no key", chain: chain, mode: 0o600, dirMode: 0o755, problem: "ctld_cert_key.pem: no such file"},
		{name: "the key of another", chain: chain, key: other, mode: 0o600, dirMode: 0o755, problem: "private key does not match"},
		{name: "no PEM", chain: chain, key: []byte("key"), mode: 0o600, dirMode: 0o755, problem: "failed to find any PEM data"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "etc")
			c := &conf.Cluster{Path: filepath.Join(dir, "sched.conf"), SecureRPC: true}
			must(t, os.Mkdir(dir, 0o755))
			if tt.chain != nil {
				must(t, os.WriteFile(filepath.Join(dir, "ctld_cert.pem"), tt.chain, 0o644))
			}
			if tt.key != nil {
				path := filepath.Join(dir, "ctld_cert_key.pem")
				must(t, os.WriteFile(path, tt.key, 0o600))
				must(t, os.Chmod(path, tt.mode)) // without the umask
			}
			must(t, os.Chmod(dir, tt.dirMode))
			s, err := ReadTLS(c.SecureRPC, c.Certificate, nss.User{UID: uint32(os.Geteuid())})
			if tt.problem == "" && (err != nil || s == nil) || tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem) || !strings.HasPrefix(err.Error(), "TLSType=tls/s2n: ")) {
				t.Errorf("error %v, want %q", err, tt.problem)
			}
		})
	}
	if s, err := ReadTLS(false, (&conf.Cluster{}).Certificate, nss.User{}); s != nil || err != nil {
		t.Errorf("without TLSType: %v, %v", s, err)
	}
}

// TestReadCA checks that a daemon that runs as root accepts a file of CAs only if
// the file belongs to root or SchedUser.
func TestReadCA(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path := filepath.Join(t.TempDir(), "ca_cert.pem")
	must(t, os.WriteFile(path, tlstest.NewCA(t).PEM(), 0o644))
	c := &conf.Cluster{User: "30001", SecureRPC: true, TLS: conf.TLSParameters{"ca_cert_file": path}}
	for uid, good := range map[int]bool{0: true, 30001: true, 30002: false} {
		must(t, os.Chown(path, uid, uid))
		if secure, err := ReadCA(c); (secure != nil) != good || (err == nil) != good {
			t.Errorf("owned by uid %d: %v", uid, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
