package server

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// TestRequestEndsWithItsConnection checks that the context of a request ends
// when the client closes the connection.
func TestRequestEndsWithItsConnection(t *testing.T) {
	eachTransport(t, testRequestEndsWithItsConnection)
}

func testRequestEndsWithItsConnection(t *testing.T, start func(testing.TB, *Server) *fixture) {
	started, ended := make(chan struct{}), make(chan error)
	waits := func(ctx context.Context, r *Request) (message.Type, message.Body, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return 0, nil, ctx.Err()
	}
	f := start(t, &Server{
		Handlers:   map[message.Type]Handler{message.RequestJobInfo: waits},
		Persistent: map[message.Type]Handler{message.AccountingGetStats: waits},
	})
	b, err := message.EncodePersistent(codec.V2411, message.AccountingGetStats, message.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"tcp", "unix"} {
		nc := f.dial(t, network)
		if _, err := persistent(t, nc, codec.V2411, opening(t, codec.V2411, token, codec.V2411)); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write(b); err != nil {
			t.Fatal(err)
		}
		<-started
		nc.Close()
		if err := <-ended; err != errClientClosed {
			t.Errorf("%s: ended because of %v", network, err)
		}

		nc = f.dial(t, network) // the controller's protocol
		if _, err := nc.Write(encode(t, codec.V2411, message.RequestJobInfo, &token, message.Empty{})); err != nil {
			t.Fatal(err)
		}
		<-started
		nc.Close()
		if err := <-ended; err != errClientClosed {
			t.Errorf("%s: ended because of %v", network, err)
		}
	}
}

// TestRequestsInAdvance checks that a client may send requests before it has
// received the answers to the previous ones. The answers must arrive in the
// order of the requests.
func TestRequestsInAdvance(t *testing.T) {
	eachTransport(t, testRequestsInAdvance)
}

func testRequestsInAdvance(t *testing.T, start func(testing.TB, *Server) *fixture) {
	f := start(t, &Server{Persistent: map[message.Type]Handler{
		message.AccountingGetStats: func(_ context.Context, r *Request) (message.Type, message.Body, error) {
			return message.AccountingRC, &message.PersistRC{Comment: "stats"}, nil
		},
		message.AccountingFini: func(_ context.Context, r *Request) (message.Type, message.Body, error) {
			return message.AccountingRC, &message.PersistRC{Comment: "fini"}, nil
		},
	}})
	nc := f.dial(t, "tcp")
	if _, err := persistent(t, nc, codec.V2411, opening(t, codec.V2411, token, codec.V2411)); err != nil {
		t.Fatal(err)
	}
	var all []byte
	want := []string{"stats", "fini", "fini", "stats", "fini"}
	for _, name := range want {
		typ := message.AccountingGetStats
		if name == "fini" {
			typ = message.AccountingFini
		}
		b, err := message.EncodePersistent(codec.V2411, typ, message.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	if _, err := nc.Write(all); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range want {
		b, err := wire.Read(nc, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var rc message.PersistRC
		if err := message.DecodeBody(codec.V2411, message.AccountingRC, b[2:], &rc); err != nil {
			t.Fatal(err)
		}
		got = append(got, rc.Comment)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
