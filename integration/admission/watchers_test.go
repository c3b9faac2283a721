package admission

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestWaitersGoOn lets many more clients of one source wait for a change than
// there are slots, wakes them all at once, and keeps their connections open. Then
// a client of another source must be served at once.
func TestWaitersGoOn(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	g := l.StartGateway(t, nil, "--max-connections", "4", address)
	a := &limitedGateway{Gateway: g, address: address}
	l.URL = "http://" + address
	tag := l.Request("GET", "/sched/v0.0.43/jobs", "").Want(t, http.StatusOK).Header.Get("ETag")
	const waiters = 400
	var woken, held sync.WaitGroup
	done := make(chan struct{})
	for range waiters {
		c, err := net.Dial("tcp", address)
		harness.Must(t, err)
		fmt.Fprintf(c, "GET /sched/v0.0.43/jobs?wait=60s HTTP/1.1\r\nHost: x\r\nX-SCHED-USER-TOKEN: %s\r\nIf-None-Match: %s\r\n\r\n", l.OwnToken, tag)
		woken.Add(1)
		held.Go(func() {
			defer c.Close()
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Error(err)
			} else if _, _ = io.Copy(io.Discard, answer.Body); answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotModified {
				t.Errorf("status %d", answer.StatusCode)
			}
			woken.Done()
			<-done
		})
	}
	time.Sleep(2 * time.Second)
	l.Submit("true", map[string]any{"hold": true})
	woken.Wait()
	for range 3 {
		begun := time.Now()
		status, _ := a.ping(newSource(t, daemonUser, false))
		if took := time.Since(begun); status != http.StatusOK || took > 10*time.Second {
			t.Errorf("another source: status %d after %v", status, took)
		}
	}
	close(done)
	held.Wait()
}
