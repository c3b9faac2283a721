package site

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"

	"schedrestd/errs"
)

// reservedPorts keeps the marks of the ports that FreePorts has returned.
var reservedPorts struct {
	sync.Mutex // guards marks
	marks      []net.Listener
}

// FreePorts returns n unused ports of the loopback interface. They are outside
// the range from which the kernel assigns ports to connections, so that a
// restarted daemon finds its port free. Until this process exits, no other call
// returns the same ports, not even a call in another process. Otherwise sites
// that start concurrently could get the same ports, because their daemons do
// not listen yet.
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
		// Like ports, abstract names are local to the network namespace.
		mark, err := net.Listen("unix", fmt.Sprintf("@schedrestd-port-%d", port))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			mark.Close()
			continue
		}
		reservedPorts.Lock()
		reservedPorts.marks = append(reservedPorts.marks, mark)
		reservedPorts.Unlock()
		defer l.Close() // closed only after all ports are chosen, so that they differ
		ports = append(ports, port)
	}
	return nil, errs.New(errs.Internal, "no free port of the loopback interface found")
}
