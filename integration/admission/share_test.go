package admission

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestSlowUser holds all slots as one user, and sends on each connection as
// slowly as permitted. While other users wait, this user must lose some slots.
// While no other user waits, this user must keep all slots.
func TestSlowUser(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	g := l.StartGateway(t, nil, "--max-connections", "4", address)
	a := &limitedGateway{Gateway: g, address: address}
	done := make(chan struct{})
	var closedConns atomic.Int32
	send := func() {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer c.Close()
		go func() {
			io.Copy(io.Discard, c)
			closedConns.Add(1)
			c.Close()
		}()
		fmt.Fprintf(c, "POST /sched/v0.0.43/job/submit HTTP/1.1\r\nHost: x\r\nX-SCHED-USER-TOKEN: %s\r\nContent-Type: application/json\r\nContent-Length: 30000000\r\n\r\n", l.OwnToken)
		for piece := strings.Repeat(" ", 32<<10); ; {
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
			select {
			case <-done:
				return
			case <-time.After(time.Second):
			}
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					send()
				}
			}
		})
	}
	defer wg.Wait()
	defer close(done)
	time.Sleep(7 * time.Second)
	if n := closedConns.Load(); n > 0 {
		t.Errorf("%d connections ended while none waited", n)
	}
	for range 2 {
		if status, _ := a.ping(newSource(t, daemonUser, false)); status != http.StatusOK {
			t.Errorf("a waiting client: %d", status)
		}
	}
	if closedConns.Load() == 0 {
		t.Error("a client was served although no connection ended")
	}
}
