package site

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"

	"schedrestd/errs"
)

// taken keeps the marks of the ports that FreePorts has returned.
var taken struct {
	sync.Mutex // guards marks
	marks      []net.Listener
}

// FreePorts finds n ports of the loopback interface that nobody uses now. They are none of those that
// the kernel gives to connections: a daemon that is restarted must find its port as it left it. Until this process ends no other
// call returns them, in any process: many sites are started side by side, and their daemons do not listen yet.
func FreePorts(n int) ([]int, error) {
	low, high := 10000, 32768
	var first, last int
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if _, err := fmt.Sscan(string(text), &first, &last); err == nil && first > low+1000 {
			high = first
		}
	}
	var ports []int
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := low + rand.IntN(high-low)
		mark, err := net.Listen("unix", fmt.Sprintf("@schedrestd-port-%d", port)) // of the same network namespace
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			mark.Close()
			continue
		}
		taken.Lock()
		taken.marks = append(taken.marks, mark)
		taken.Unlock()
		defer l.Close() // held until the last is known, so that they differ
		ports = append(ports, port)
	}
	return nil, errs.New(errs.Internal, "no free port of the loopback interface found")
}
