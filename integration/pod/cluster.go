package pod

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netns"

	"schedrestd/integration/harness"
)

// The addresses of the test's cluster.
const nodeIP, podIP, dnsIP = "10.244.0.1", "10.244.0.2", "10.96.0.10"

// serviceIP returns the address of the Service with this port.
func serviceIP(port int) string { return fmt.Sprintf("10.96.0.%d", port%200) }

// Cluster has two network namespaces: one for the pod, and one for everything
// that the pod reaches in a Kubernetes cluster.
type Cluster struct {
	Node   string // path of the namespace outside the pod
	pod    string // path of the pod's namespace
	nodeNS netns.NsHandle
}

// NewCluster makes these namespaces. They are removed when the test ends.
func NewCluster(t *testing.T) *Cluster {
	t.Helper()
	ip := harness.FindProgram(t, "ip", "iproute2")
	name := func(what string) string { return fmt.Sprintf("schedrestd-test-%d-%s", os.Getpid(), what) }
	node, pod := name("node"), name("pod")
	run := func(args ...string) error {
		out, err := exec.Command(ip, args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return err
	}
	for _, n := range []string{node, pod} {
		if err := run("netns", "add", n); err != nil {
			t.Skipf("network namespaces can't be made here: %v", err)
		}
		t.Cleanup(func() { run("netns", "del", n) })
	}
	for _, args := range [][]string{
		{"link", "add", "pod", "netns", node, "type", "veth", "peer", "name", "eth0", "netns", pod},
		{"-n", node, "addr", "add", nodeIP + "/24", "dev", "pod"},
		{"-n", node, "addr", "add", "10.96.0.0/12", "dev", "lo"},
		{"-n", node, "route", "add", "local", "10.96.0.0/12", "dev", "lo"},
		{"-n", node, "link", "set", "lo", "up"},
		{"-n", node, "link", "set", "pod", "up"},
		{"-n", pod, "addr", "add", podIP + "/24", "dev", "eth0"},
		{"-n", pod, "link", "set", "lo", "up"},
		{"-n", pod, "link", "set", "eth0", "up"},
		{"-n", pod, "route", "add", "default", "via", nodeIP},
	} {
		harness.Must(t, run(args...))
	}
	c := &Cluster{Node: "/run/netns/" + node, pod: "/run/netns/" + pod}
	var err error
	c.nodeNS, err = netns.GetFromPath(c.Node)
	harness.Must(t, err)
	t.Cleanup(func() { c.nodeNS.Close() })
	return c
}

// dial connects to the pod's port, as a client in the cluster does.
func (c *Cluster) dial(port int) (net.Conn, error) {
	return harness.DialFrom(c.nodeNS, "tcp", net.JoinHostPort(podIP, strconv.Itoa(port)))()
}

// Service forwards connections to a Service to the connections that dial makes.
func (c *Cluster) Service(t *testing.T, port int, dial func() (net.Conn, error)) {
	t.Helper()
	harness.ForwardFrom(t, c.nodeNS, net.JoinHostPort(serviceIP(port), strconv.Itoa(port)), dial)
}

// ServiceURL returns the URL of the Service with this port.
func (c *Cluster) ServiceURL(port int) string {
	return fmt.Sprintf("http://%s:%d", serviceIP(port), port)
}

// dns starts the cluster's name server, which knows these names.
func (c *Cluster) dns(t *testing.T, names map[string]string) {
	t.Helper()
	var conn net.PacketConn
	harness.Must(t, harness.InNetwork(c.nodeNS, func() (err error) {
		conn, err = net.ListenPacket("udp4", dnsIP+":53")
		return err
	}))
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer := answerDNS(buf[:n], names); answer != nil {
				conn.WriteTo(answer, from)
			}
		}
	}()
}

// answerDNS answers a query for one name (RFC 1035).
func answerDNS(query []byte, names map[string]string) []byte {
	const header, typeA = 12, 1
	var labels []string
	end := header
	for end < len(query) && query[end] != 0 {
		next := end + 1 + int(query[end])
		if next > len(query) {
			return nil
		}
		labels = append(labels, string(query[end+1:next]))
		end = next
	}
	end += 5 // the name's end, the type and the class
	if end > len(query) {
		return nil
	}
	ip, known := names[strings.ToLower(strings.Join(labels, "."))]
	answer := append([]byte{query[0], query[1], 0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[header:end]...)
	switch {
	case !known:
		answer[3] |= 3 // there is no such name
	case binary.BigEndian.Uint16(query[end-4:]) == typeA:
		answer[7] = 1
		answer = append(append(answer, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 30, 0, 4), net.ParseIP(ip).To4()...)
	}
	return answer
}
