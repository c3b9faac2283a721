package server

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

func opening(t testing.TB, v codec.Version, cred message.Credential, body codec.Version) []byte {
	t.Helper()
	b, err := message.EncodeOpening(v, message.FixedCredential(&cred), &message.PersistInit{Version: body, ClusterName: "c1", PersistType: message.PersistToAccounting})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// persistent sends one message and reads the answer, which must be a PersistRC.
func persistent(t testing.TB, nc net.Conn, v codec.Version, b []byte) (message.PersistRC, error) {
	t.Helper()
	if _, err := nc.Write(b); err != nil {
		t.Fatal(err)
	}
	answer, err := wire.Read(nc, 1<<20)
	if err != nil {
		return message.PersistRC{}, err
	}
	if typ := message.Type(binary.BigEndian.Uint16(answer)); typ != message.AccountingRC {
		t.Fatalf("message %d", typ)
	}
	var rc message.PersistRC
	return rc, message.DecodeBody(v, message.AccountingRC, answer[2:], &rc)
}

func TestPersistentOpening(t *testing.T) {
	f := start(t, &Server{Persistent: map[message.Type]Handler{}, Oldest: codec.V2302, Newest: codec.V2511})
	version := func(v codec.Version) uint16 { return uint16(v) << 8 }
	tests := []struct {
		name    string
		network string
		header  codec.Version
		body    codec.Version
		cred    message.Credential
		want    message.PersistRC
	}{
		{name: "token", network: "tcp", header: codec.V2411, body: codec.V2411, cred: token, want: message.PersistRC{Info: version(codec.V2411)}},
		{name: "kernel", network: "unix", header: codec.V2411, body: codec.V2411, cred: kernel, want: message.PersistRC{Info: version(codec.V2411)}},
		{name: "body too new is echoed", network: "tcp", header: codec.V2511, body: codec.V2605, cred: token, want: message.PersistRC{Info: version(codec.V2605)}},
		{name: "kernel on TCP", network: "tcp", header: codec.V2411, body: codec.V2411, cred: kernel,
			want: message.PersistRC{Code: fault.Authentication, Comment: "the credential is not accepted", Info: version(codec.V2411)}},
		{name: "header too new", network: "tcp", header: codec.V2605, body: codec.V2605, cred: token,
			want: message.PersistRC{Code: fault.ProtocolVersion, Comment: "the daemon does not support this protocol version", Info: version(codec.V2511)}},
		{name: "header too old", network: "tcp", header: codec.V2205, body: codec.V2205, cred: token,
			want: message.PersistRC{Code: fault.ProtocolVersion, Comment: "the daemon does not support this protocol version", Info: version(codec.V2511)}},
		{name: "body too old", network: "tcp", header: codec.V2411, body: codec.V2205, cred: token,
			want: message.PersistRC{Code: fault.ProtocolVersion, Comment: "the daemon does not support this protocol version", Info: version(codec.V2205)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nc := f.dial(t, tt.network)
			got, err := persistent(t, nc, tt.header, opening(t, tt.header, tt.cred, tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.want.Code != 0 && !t.Failed() { // otherwise the connection may stay open
				if _, err := nc.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("stays open: %v", err)
				}
			}
		})
	}
}

func TestPersistentStays(t *testing.T) {
	var calls atomic.Int32
	f := start(t, &Server{Persistent: map[message.Type]Handler{
		message.AccountingGetStats: func(_ context.Context, r *Request) (message.Type, message.Body, error) {
			if r.Cluster != "c1" || r.Identity.Name != "ann" {
				t.Errorf("cluster %q, user %q", r.Cluster, r.Identity.Name)
			}
			if calls.Add(1) == 2 {
				return 0, nil, errs.New(errs.Denied, "once is enough")
			}
			return message.AccountingRC, &message.PersistRC{Comment: "fine"}, nil
		},
	}})
	nc := f.dial(t, "tcp")
	if _, err := persistent(t, nc, codec.V2411, opening(t, codec.V2411, token, codec.V2411)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []message.PersistRC{{Comment: "fine"}, {Code: fault.AccessDenied, Comment: "once is enough", Info: 1489}, {Comment: "fine"}} {
		b, err := message.EncodePersistent(codec.V2411, message.AccountingGetStats, message.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := persistent(t, nc, codec.V2411, b)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("request %d: %v (-want +got):\n%s", i, err, diff)
		}
	}
}

// TestPersistentIsJudgedEachTime checks that the server ends a persistent
// connection at the next request if the connection's token is no longer
// accepted, or now stands for another identity.
func TestPersistentIsJudgedEachTime(t *testing.T) {
	ended := time.Now().Add(-time.Second) // already expired; whether a leeway still covers it is up to Verify
	ann := Identity{UID: 100, GID: 101, Name: "ann", TokenUser: "root", Expires: ended}
	change := func(f func(*Identity)) Identity {
		id := ann
		f(&id)
		return id
	}
	for _, tt := range []struct {
		name string
		then Identity
		err  error
		want uint32
	}{
		{"as before", ann, nil, 0},
		{"another expiry", change(func(id *Identity) { id.Expires = ended.Add(time.Hour) }), nil, 0},
		{"no longer accepted", Identity{}, errors.New("its key was taken back"), fault.Authentication},
		{"another uid", change(func(id *Identity) { id.UID++ }), nil, fault.Authentication},
		{"another group", change(func(id *Identity) { id.GID++ }), nil, fault.Authentication},
		{"another name", change(func(id *Identity) { id.Name = "bob" }), nil, fault.Authentication},
		{"without acting for another user", change(func(id *Identity) { id.TokenUser = "" }), nil, fault.Authentication},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var changed atomic.Bool
			var answered atomic.Int32
			f := start(t, &Server{
				Persistent: map[message.Type]Handler{message.AccountingGetStats: func(context.Context, *Request) (message.Type, message.Body, error) {
					answered.Add(1)
					return message.AccountingRC, &message.PersistRC{}, nil
				}},
				Verify: func(token, _ string) (Identity, error) {
					switch {
					case token != secret:
						return Identity{}, errors.New("forged")
					case changed.Load():
						return tt.then, tt.err
					}
					return ann, nil
				},
			})
			nc := f.dial(t, "tcp")
			if rc, err := persistent(t, nc, codec.V2411, opening(t, codec.V2411, token, codec.V2411)); err != nil || rc.Code != 0 {
				t.Fatalf("%+v, %v", rc, err)
			}
			b, err := message.EncodePersistent(codec.V2411, message.AccountingGetStats, message.Empty{})
			if err != nil {
				t.Fatal(err)
			}
			if rc, err := persistent(t, nc, codec.V2411, b); err != nil || rc.Code != 0 {
				t.Fatalf("before: %+v, %v", rc, err)
			}
			changed.Store(true)
			rc, err := persistent(t, nc, codec.V2411, b)
			if err != nil || rc.Code != tt.want || answered.Load() != 1+map[bool]int32{true: 1}[tt.want == 0] {
				t.Errorf("got %+v, %v; %d were answered", rc, err, answered.Load())
			}
			if tt.want == 0 {
				return
			}
			if rc.Comment != "the credential is not accepted" {
				t.Errorf("the peer receives %q", rc.Comment)
			}
			if _, err := nc.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("stays open: %v", err)
			}
		})
	}
}
