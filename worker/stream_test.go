package worker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"schedrestd/ipc"
)

// TestStalledStream: who asks over HTTP/2 and takes no answer holds no place among the requests of
// this worker for good. His connection is never full: it is his stream that is.
func TestStalledStream(t *testing.T) {
	limits := raw
	limits.Stall = 100 * time.Millisecond
	ended := make(chan error, 1)
	st := newStage(t, ipc.Setup{Limits: limits}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for piece := make([]byte, 64<<10); err == nil; {
			_, err = w.Write(piece)
		}
		ended <- err
	}))
	r := st.getHTTP2(t)
	defer r.Body.Close() // nobody reads it
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it is answered for ever")
	}
}

// TestBrokenStream: an answer over HTTP/2 that is given up in the middle has no end.
func TestBrokenStream(t *testing.T) {
	st := newStage(t, ipc.Setup{Limits: raw}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, 100<<10))
		panic(http.ErrAbortHandler)
	}))
	r := st.getHTTP2(t)
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); err == nil {
		t.Errorf("%d bytes, and that is the end", len(b))
	}
}

// getHTTP2 asks over a connection of its own.
func (st *stage) getHTTP2(t *testing.T) *http.Response {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	leaf, _ := selfSigned(t, key)
	near, far := st.pair()
	secured := tls.Server(far, &tls.Config{NextProtos: []string{"h2"}, Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}})
	go st.shake(far, secured, time.Minute)
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return near, nil }}}
	r, err := client.Get("https://gateway/")
	must(t, err)
	if r.ProtoMajor != 2 {
		t.Fatal(r.Proto)
	}
	return r
}
