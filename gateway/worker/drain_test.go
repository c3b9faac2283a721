package worker

import (
	"bufio"
	"context"
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
	limits := testLimits
	limits.ReadHeader = time.Minute
	st := newTestServer(t, work.Setup{Limits: limits}, nil)
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

// TestDrainAwaitsHandshake checks a drain that begins before the handshake of a
// connection. The request behind the handshake must be answered, as the last one
// on the connection. A client that does not begin its handshake must not keep the
// worker from exiting.
func TestDrainAwaitsHandshake(t *testing.T) {
	for name, limit := range map[string]time.Duration{"begun": time.Minute, "silent": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			limits := testLimits
			limits.ReadHeader = limit
			st := newTestServer(t, work.Setup{Limits: limits}, nil)
			raw, c := st.pair()
			added := st.add(c)
			added.Attach(c, c, nil)
			go st.handshake(c, added, tls.Server(c, serverConfig(t, nil)))
			go st.shutdown()
			must(t, raw.SetDeadline(time.Now().Add(30*time.Second)))
			if name == "begun" {
				client := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
				_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				must(t, err)
				resp, err := http.ReadResponse(bufio.NewReader(client), nil)
				if must(t, err); resp.StatusCode != 200 || !resp.Close {
					t.Errorf("%s, the last answer: %t", resp.Status, resp.Close)
				}
			} else if n, err := raw.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%d, %v", n, err)
			}
			if status := <-st.exit; status != 0 {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

// TestDrainAwaitsHTTP2 does the same for a client that uses HTTP/2.
func TestDrainAwaitsHTTP2(t *testing.T) {
	limits := testLimits
	limits.ReadHeader = time.Minute
	st := newTestServer(t, work.Setup{Limits: limits}, nil)
	st.idleGrace = time.Minute
	go st.runHTTP2()
	raw, c := st.pair()
	must(t, raw.SetDeadline(time.Now().Add(30*time.Second)))
	added := st.add(c)
	added.Attach(c, c, nil)
	go st.handshake(c, added, tls.Server(c, serverConfig(t, []string{"h2"})))
	go st.shutdown()
	for !draining.Load() {
		time.Sleep(time.Millisecond)
	}
	client := http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
		return tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}), nil
	}}}
	resp, err := client.Get("https://x/")
	if must(t, err); resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Errorf("%s %s", resp.Proto, resp.Status)
	}
	resp.Body.Close()
	if status := <-st.exit; status != 0 { // the connection has ended with this answer
		t.Errorf("exit status %d", status)
	}
}
