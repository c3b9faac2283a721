package worker

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"schedrestd/ipc/work"
)

// TestDrainReadsWholeRequest checks a drain that begins when only part of a
// request has arrived. The worker must read the rest, and its answer must be
// the last one on the connection. The drain must not wait for idle connections.
func TestDrainReadsWholeRequest(t *testing.T) {
	st := newTestServer(t, work.Setup{}, nil)
	st.arrivalGrace = time.Minute
	connect := func() net.Conn {
		client, c := st.pair()
		go st.newHTTP1Conn(c, c, st.add(c)).Serve()
		client.SetDeadline(time.Now().Add(30 * time.Second))
		return client
	}
	partial, idle := connect(), connect()
	io.WriteString(partial, "GET /late HTTP/1.1\r\n")
	io.WriteString(idle, "GET /early HTTP/1.1\r\nHost: x\r\n\r\n")
	in := bufio.NewReader(idle)
	resp, err := http.ReadResponse(in, nil)
	must(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	must(t, err)

	go st.shutdown()
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("idle connection: %v", err)
	}
	io.WriteString(partial, "Host: x\r\n\r\n")
	in = bufio.NewReader(partial)
	resp, err = http.ReadResponse(in, nil)
	must(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	must(t, err)
	if _, err := in.ReadByte(); resp.StatusCode != 200 || err != io.EOF { // the header says so only if it was sent after the drain reached this connection
		t.Errorf("%s, and then %v", resp.Status, err)
	}
	if status := <-st.exit; status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestDrainEndsHandshakes checks that a drain does not wait for a client that
// has connected but not begun its handshake.
func TestDrainEndsHandshakes(t *testing.T) {
	limits := testLimits
	limits.ReadHeader = time.Hour
	st := newTestServer(t, work.Setup{Limits: limits}, nil)
	config := loadedKeys(t, st.keys).TLS()
	for _, order := range []string{"before", "after"} {
		client, c := st.pair()
		added := st.add(c)
		added.Attach(c, c, nil)
		go st.handshake(c, added, tls.Server(c, config))
		if order == "before" {
			go st.shutdown()
		}
		client.SetReadDeadline(time.Now().Add(30 * time.Second))
		if n, err := client.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a handshake that begins %s the drain: %d, %v", order, n, err)
		}
		if order == "before" {
			if status := <-st.exit; status != 0 {
				t.Errorf("status %d", status)
			}
		}
	}
}
