package site

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"

	"schedrestd/errs"
)

// FreePorts finds n ports of the loopback interface that nobody uses now. They are none of those that
// the kernel gives to connections: a daemon that is restarted must find its port as it left it.
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
		defer l.Close() // held until the last is known, so that they differ
		ports = append(ports, port)
	}
	return nil, errs.New(errs.Internal, "no free port of the loopback interface found")
}
