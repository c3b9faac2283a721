package worker

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"schedrestd/ipc/work"
)

// TestDrainReadsWholeRequest checks a request of which only a part has arrived
// when a drain begins. It must be read completely and answered, as the last
// request of its connection. The drain must not wait for idle connections.
func TestDrainReadsWholeRequest(t *testing.T) {
	st := newStage(t, work.Setup{}, nil)
	st.settle = time.Minute
	connect := func() net.Conn {
		client, c := st.pair()
		st.held.Add(1)
		c.done = st.held.Done
		go st.queue.put(st.own.wrap(c, c.peer))
		client.SetDeadline(time.Now().Add(30 * time.Second))
		return client
	}
	late, resting := connect(), connect()
	io.WriteString(late, "GET /late HTTP/1.1\r\n")
	io.WriteString(resting, "GET /early HTTP/1.1\r\nHost: x\r\n\r\n")
	in := bufio.NewReader(resting)
	resp, err := http.ReadResponse(in, nil)
	must(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	must(t, err)

	go st.finish()
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("idle connection: %v", err)
	}
	io.WriteString(late, "Host: x\r\n\r\n")
	resp, err = http.ReadResponse(bufio.NewReader(late), nil)
	must(t, err)
	if resp.StatusCode != 200 || !resp.Close {
		t.Errorf("%s, the last one: %v", resp.Status, resp.Close)
	}
	if status := <-st.exit; status != 0 {
		t.Errorf("exit status %d", status)
	}
}
