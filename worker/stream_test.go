package worker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	leaf, _ := selfSigned(t, key)
	near, far := st.pair()
	go st.queue.put(tls.Server(far, &tls.Config{NextProtos: []string{"h2"}, Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}}))
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return near, nil }}}
	r, err := client.Get("https://gateway/")
	must(t, err)
	defer r.Body.Close() // nobody reads it
	if r.ProtoMajor != 2 {
		t.Fatal(r.Proto)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it is answered for ever")
	}
}
