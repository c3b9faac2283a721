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

// TestSlowUser checks a user who holds all slots and sends on each as slowly as
// permitted. While other users wait, this user must lose some slots. While no
// user waits, this user must keep them all.
func TestSlowUser(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	g := l.Gate(t, nil, "--max-connections", "4", address)
	a := &admitted{Gate: g, address: address}
	over := make(chan struct{})
	var ended atomic.Int32
	send := func() {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer c.Close()
		go func() {
			io.Copy(io.Discard, c)
			ended.Add(1)
			c.Close()
		}()
		fmt.Fprintf(c, "POST /sched/v0.0.43/job/submit HTTP/1.1\r\nHost: x\r\nX-SCHED-USER-TOKEN: %s\r\nContent-Type: application/json\r\nContent-Length: 30000000\r\n\r\n", l.OwnToken)
		for piece := strings.Repeat(" ", 32<<10); ; {
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
			select {
			case <-over:
				return
			case <-time.After(time.Second):
			}
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					send()
				}
			}
		})
	}
	defer all.Wait()
	defer close(over)
	time.Sleep(7 * time.Second)
	if n := ended.Load(); n > 0 {
		t.Errorf("%d connections ended while none waited", n)
	}
	for range 2 {
		if status, _ := a.ask(source(t, daemonUser, false)); status != http.StatusOK {
			t.Errorf("a waiting client: %d", status)
		}
	}
	if ended.Load() == 0 {
		t.Error("a client was served although no connection ended")
	}
}
