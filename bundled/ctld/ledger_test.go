package ctld

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/auth"
	"schedrestd/bundled/daemon"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// TestSquattedAccountingPort runs a program that listens on the accounting
// daemon's port while the daemon is down. It checks that the program receives
// no token that the controller would accept.
func TestSquattedAccountingPort(t *testing.T) {
	key, err := auth.NewKey(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	tokens := make(chan string, 100)
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			b, _ := wire.Read(nc, 1<<20)
			f, _ := message.ParseFrame(b[2:])
			tokens <- f.Credential.Token
			nc.Close()
		}
	}()
	c := &conf.Cluster{Accounting: &conf.Accounting{Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port}}
	l, err := newLedger(c, &key, daemon.Super(0))
	if err != nil {
		t.Fatal(err)
	}
	l.Record(t.Context(), []model.Job{{}})
	token := <-tokens
	if strings.Count(token, ".") != 2 {
		t.Fatalf("the squatter received no token: %q", token)
	}
	if claims, err := (auth.Verifier{Key: key}).Verify(token); err == nil {
		t.Errorf("the controller accepts the squatter as %s for %v", claims.User, time.Until(claims.Expires))
	}
}

func TestSocketOfAStranger(t *testing.T) {
	path := filepath.Join(sockettest.Dir(t), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var received atomic.Int64
	var served sync.WaitGroup
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer nc.Close()
				n, _ := nc.Read(make([]byte, 1))
				received.Add(int64(n))
			})
		}
	}()
	c := &conf.Cluster{Accounting: &conf.Accounting{Host: "127.0.0.1", Port: 1, Socket: path}}
	for _, trusted := range []bool{true, false} {
		l, err := newLedger(c, nil, func(uid uint32) bool { return trusted && uid == uint32(os.Geteuid()) })
		if err != nil {
			t.Fatal(err)
		}
		received.Store(0)
		err = l.Record(t.Context(), []model.Job{{}})
		awaitServed(t, path) // earlier connections are accepted by then
		served.Wait()
		if n := received.Load(); (n > 0) != trusted {
			t.Errorf("known %t: %d bytes were sent", trusted, n)
		}
		if !trusted && (err == nil || !strings.Contains(err.Error(), "neither root's nor the scheduler's")) {
			t.Errorf("error %v", err)
		}
	}
}

// awaitServed connects to a server that closes each connection, and returns when
// the server has closed this one.
func awaitServed(t *testing.T, path string) {
	t.Helper()
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, nc)
}

// TestAccountingWithoutKey checks the error when neither a UNIX socket nor a
// key is configured. The error's hint must suggest a UNIX socket and a key as
// remedies. If jwks= is configured without a key, the error must say that a key
// set can't be used to sign.
func TestAccountingWithoutKey(t *testing.T) {
	accounting := &conf.Accounting{Host: "127.0.0.1", Port: 1}
	for _, tt := range []struct {
		name   string
		auth   conf.Auth
		reason string
		remedy string
	}{
		{"no tokens at all", conf.Auth{}, "this cluster has no jwt_key", "AuthAltTypes=auth/jwt and AuthAltParameters=jwt_key=PATH"},
		{"a key set alone", conf.Auth{JWT: true, JWKS: "/j"}, "the key set in jwks= cannot sign", "jwt_key=PATH beside jwks="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &conf.Cluster{Path: "/etc/c", Accounting: accounting, Auth: tt.auth}
			_, err := newLedger(c, nil, daemon.Super(0))
			if err == nil || !strings.HasPrefix(err.Error(), "/etc/c: ") || !strings.Contains(err.Error(), tt.reason) {
				t.Fatalf("no key, no socket: %v", err)
			}
			for _, remedy := range []string{"AccountingStorageSocket=PATH", tt.remedy} {
				if hint := errs.HintOf(err); !strings.Contains(hint, remedy) {
					t.Errorf("hint %q has no %s", hint, remedy)
				}
			}
			c.Accounting = &conf.Accounting{Host: "127.0.0.1", Port: 1, Socket: "/s"}
			if _, err := newLedger(c, nil, daemon.Super(0)); err != nil {
				t.Errorf("with a socket: %v", err)
			}
		})
	}
}
