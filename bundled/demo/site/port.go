package site

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"

	"schedrestd/internal/errs"
)

// reservedPorts contains a listener for each port that FreePorts has returned.
// These listeners mark the ports as reserved.
var reservedPorts struct {
	sync.Mutex // guards marks
	marks      []net.Listener
}

// FreePorts returns n unused ports of the loopback interface. The kernel does
// not assign these ports to outgoing connections, so a daemon that restarts
// finds its port free.
//
// No other call returns the same ports until this process exits, not even a
// call in another process. Without this guarantee, two sites that start at the
// same time could get the same ports, because their daemons do not listen yet.
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
		// This abstract socket marks the port as reserved. The name of the
		// socket belongs to the same network namespace as the port.
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
		defer l.Close() // closed only after all ports are chosen, so that no port is chosen twice
		ports = append(ports, port)
	}
	return nil, errs.New(errs.Internal, "no free port of the loopback interface found")
}
