package site

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"

	"schedrestd/errs"
)

// FreePorts returns n unused ports of the loopback interface. They are outside
// the range from which the kernel assigns ports to connections, so that a
// restarted daemon finds its port free.
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
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer l.Close() // held until all are known, so that they differ
		ports = append(ports, port)
	}
	return nil, errs.New(errs.Internal, "no free port of the loopback interface found")
}
