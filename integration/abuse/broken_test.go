package abuse

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// A breakPoint is the moment at which a client breaks its connection.
type breakPoint struct {
	name    string
	send    string // what the client has sent
	await   string // the client has read this, too
	silence bool   // the gateway ends a silent connection here within half a minute
	raw     bool   // the client has sent this instead of a TLS handshake
	unread  bool   // the gateway is sending an answer that the client does not read
}

// A breakage is a way to break a connection. The function gets the connection
// below TLS.
type breakage struct {
	name    string
	act     func(*testing.T, net.Conn)
	tlsOnly bool
	silence bool // possible only where breakPoint.silence is set
	open    bool // the client keeps its connection open, so the gateway waits until the client reads
}

var breakages = []breakage{
	{name: "reset", act: func(t *testing.T, c net.Conn) {
		if tcp, ok := c.(*net.TCPConn); ok {
			harness.Must(t, tcp.SetLinger(0))
		}
		c.Close()
	}},
	{name: "closed", act: func(_ *testing.T, c net.Conn) { c.Close() }},
	{name: "half-closed", open: true, act: func(t *testing.T, c net.Conn) { harness.Must(t, c.(interface{ CloseWrite() error }).CloseWrite()) }},
	{name: "a record that can't be decrypted, then reset", tlsOnly: true, act: func(t *testing.T, c net.Conn) {
		_, err := io.WriteString(c, "\x17\x03\x03\x00\x20"+strings.Repeat("U", 32))
		harness.Must(t, err)
		harness.Must(t, c.(*net.TCPConn).SetLinger(0))
		time.AfterFunc(100*time.Millisecond, func() { c.Close() })
	}},
	{name: "a record that can't be decrypted", tlsOnly: true, open: true, act: func(t *testing.T, c net.Conn) {
		_, err := io.WriteString(c, "\x17\x03\x03\x00\x20"+strings.Repeat("U", 32))
		harness.Must(t, err)
	}},
	{name: "silence", silence: true, act: func(*testing.T, net.Conn) {}},
}

// http1Points returns the points of an HTTP/1 connection. The token belongs to
// a user, because the gateway reads a body only with a valid token.
func http1Points(token string) []breakPoint {
	const get = "GET /healthz HTTP/1.1\r\nHost: lab\r\n\r\n"
	post := "POST /sched/" + harness.Version + "/job/submit HTTP/1.1\r\nHost: lab\r\nContent-Type: application/json\r\n" + token
	chunked := post + "Transfer-Encoding: chunked\r\n\r\n"
	return []breakPoint{
		{name: "before a request", silence: true},
		{name: "in a request line", send: "GET /hea", silence: true},
		{name: "in a header", send: get[:27], silence: true},
		{name: "before a body", send: post + "Content-Length: 99\r\n\r\n"},
		{name: "in a body", send: post + "Content-Length: 99\r\n\r\n{", silence: true},
		{name: "in a chunk's size", send: chunked + "1"},
		{name: "in a chunk", send: chunked + "9\r\n{"},
		{name: "in a trailer", send: chunked + "2\r\n{}\r\n0\r\nX: y"},
		{name: "within an answer", unread: true, send: "GET /openapi HTTP/1.1\r\nHost: lab\r\n" + token + "\r\n"},
		{name: "after an answer", send: get, await: "HTTP/1.1 200"},
		{name: "in a second request line", send: get + "GET", await: "HTTP/1.1 200", silence: true},
		{name: "in a second header", send: get + get[:27], await: "HTTP/1.1 200"},
		{name: "in a second body", send: get + post + "Content-Length: 99\r\n\r\n{", await: "HTTP/1.1 200"},
	}
}

// handshakePoints lists the points of a TLS handshake.
var handshakePoints = []breakPoint{
	{name: "before the handshake", raw: true, silence: true},
	{name: "in a record's header", raw: true, send: "\x16\x03"},
	{name: "in the first message", raw: true, send: "\x16\x03\x01\x02\x00\x01", silence: true},
	{name: "in plain HTTP", raw: true, send: "GET / H"},
}

// http2Points returns the points of an HTTP/2 connection.
func http2Points(token string) []breakPoint {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	start := preface + frame(frameSettings, 0, 0, "")
	head := func(method, path string) string {
		return literals(":method", method, ":scheme", "https", ":path", path, ":authority", "lab", "x-sched-user-token", token)
	}
	get := head("GET", "/healthz")
	post := start + frame(frameHeaders, endHeaders, 1, head("POST", "/sched/"+harness.Version+"/job/submit"))
	return []breakPoint{
		{name: "before the preface", silence: true},
		{name: "in the preface", send: preface[:9], silence: true},
		{name: "before a request", send: start},
		{name: "in a frame's header", send: start + "\x00\x00"},
		{name: "in a header", send: start + frame(frameHeaders, endStream|endHeaders, 1, get)[:20]},
		{name: "before the rest of a header", send: start + frame(frameHeaders, endStream, 1, get)},
		{name: "before a body", send: post},
		{name: "in a body", send: post + frame(frameData, 0, 1, "{}")[:10]},
		{name: "within an answer", unread: true, send: start + frame(frameHeaders, endStream|endHeaders, 1, head("GET", "/openapi"))},
		{name: "after an answer", send: start + frame(frameHeaders, endStream|endHeaders, 1, get), await: "ok"},
	}
}

// TestBrokenConnections breaks connections at all points and in all ways. Even
// if it breaks far more connections than there are slots, the gateway must
// answer the next request, and in the end no process may have more descriptors
// than before.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	const slots, repeats = 60, 4
	s := harness.NewTLSLab(t)
	socket := filepath.Join(harness.SocketDir(t, s.Lab), "broken")
	plain, secure := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	part := s.Restd
	part.Args = append(slices.Clone(part.Args[:len(part.Args)-2]), "--max-connections", fmt.Sprint(slots), plain, "https://"+secure, "unix:"+socket)
	g := s.StartGatewayPart(t, part, []string{"SCHEDRESTD_PENALTIES=off"})
	g.CheckServes(plain)
	workers := g.Workers()
	processes := append(slices.Clone(workers), harness.DescendantNamed(t, g.PID(), "schedrestd-disp"))
	descriptors := func() (list []int) {
		for _, pid := range processes {
			list = append(list, harness.Descriptors(t, pid))
		}
		return list
	}
	for _, p := range []string{plain, secure, socket} { // so that everything is loaded that stays open
		breakOne(t, p, p == secure, nil, breakPoint{send: "GET /healthz HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n", await: "200"}, breakages[1])
	}
	harness.Eventually(t, "no connection has a slot", func() bool { return heldSlots(t, g) == 0 })
	before := descriptors()

	token := "X-SCHED-USER-TOKEN: " + s.OwnToken + "\r\n"
	var broken sync.WaitGroup
	total := 0
	for _, tr := range []struct {
		addr   string
		tls    []string
		points []breakPoint
	}{
		{plain, nil, http1Points(token)},
		{socket, nil, http1Points(token)},
		{secure, []string{"http/1.1"}, append(slices.Clone(handshakePoints), http1Points(token)...)},
		{secure, []string{"h2"}, http2Points(s.OwnToken)},
	} {
		for _, p := range tr.points {
			for _, b := range breakages {
				if b.silence && !p.silence || b.tlsOnly && (tr.tls == nil || p.raw) || b.open && p.unread {
					continue
				}
				for range repeats {
					total++
					broken.Go(func() { breakOne(t, tr.addr, tr.tls != nil, tr.tls, p, b) })
				}
				broken.Wait()
			}
		}
	}
	t.Logf("%d connections were broken", total)
	g.CheckServes(plain)
	g.CheckServes(socket)
	// A process may have closed descriptors that it had before.
	var after []int
	for start := time.Now(); time.Since(start) < clientTimeout; time.Sleep(100 * time.Millisecond) {
		after = descriptors()
		if heldSlots(t, g) == 0 && !hasGrown(before, after) {
			break
		}
	}
	if held := heldSlots(t, g); held != 0 || hasGrown(before, after) {
		t.Errorf("%d slots are held; descriptors of the workers and the dispatcher: %v, before %v", held, after, before)
	}
	if now := g.Workers(); !slices.Equal(now, workers) {
		t.Errorf("workers %v, before %v", now, workers)
	}
	if strings.Contains(g.Logged(), "worker replaced") {
		t.Error("a worker was replaced")
	}
}

// hasGrown reports whether an element of after is greater than the one of
// before.
func hasGrown(before, after []int) bool {
	for i := range before {
		if after[i] > before[i] {
			return true
		}
	}
	return false
}

// breakOne breaks one connection to an address or a UNIX socket. If protocols
// is not nil, it offers these in the TLS handshake.
func breakOne(t *testing.T, addr string, secure bool, protocols []string, p breakPoint, b breakage) {
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	raw, err := net.Dial(network, addr)
	if err != nil {
		t.Errorf("%s: %v", p.name, err)
		return
	}
	t.Cleanup(func() { raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(clientTimeout))
	client := raw
	if secure && !p.raw {
		tlsClient := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
		if err := tlsClient.Handshake(); err != nil {
			t.Errorf("%s, %s: %v", p.name, b.name, err)
			return
		}
		client = tlsClient
	}
	if _, err := io.WriteString(client, p.send); err != nil {
		t.Errorf("%s, %s: %v", p.name, b.name, err)
		return
	}
	var text string
	for buf := make([]byte, 4096); !strings.Contains(text, p.await); {
		n, err := client.Read(buf)
		if text += string(buf[:n]); err != nil {
			t.Errorf("%s, %s: %v behind %q", p.name, b.name, err, text)
			return
		}
	}
	b.act(t, raw)
}

var heldCount = regexp.MustCompile(`connections\.held=(\d+)`)

// heldSlots returns the number of connections that have a slot, as the gateway
// logs it after SIGUSR1.
func heldSlots(t *testing.T, g *harness.Gateway) (n int) {
	t.Helper()
	seen := len(heldCount.FindAllString(g.Logged(), -1))
	harness.Must(t, syscall.Kill(g.PID(), syscall.SIGUSR1))
	harness.Eventually(t, "the gateway has logged its counters", func() bool {
		list := heldCount.FindAllStringSubmatch(g.Logged(), -1)
		if len(list) <= seen {
			return false
		}
		_, err := fmt.Sscan(list[len(list)-1][1], &n)
		harness.Must(t, err)
		return true
	})
	return n
}

// TestBrokenInetd breaks the connection of a gateway in inetd mode. The gateway
// must exit, because its process holds the connection, and inetd limits the
// number of such processes.
func TestBrokenInetd(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	points := http1Points("X-SCHED-USER-TOKEN: " + l.OwnToken + "\r\n")
	for _, b := range breakages {
		for _, p := range points {
			if b.tlsOnly || b.silence && p.name != "in a header" || b.open && p.unread {
				continue
			}
			if p.await == "" { // otherwise the connection could break before the gateway has started
				p.send, p.await = "GET /healthz HTTP/1.1\r\nHost: lab\r\n\r\n"+p.send, "HTTP/1.1 200"
			}
			t.Run(b.name+"/"+p.name, func(t *testing.T) {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				harness.Must(t, err)
				defer ln.Close()
				exited := make(chan error, 1)
				go func() {
					c, err := ln.Accept()
					if err == nil {
						err = runInetd(l.InetdCommand(), c.(*net.TCPConn))
					}
					exited <- err
				}()
				breakOne(t, ln.Addr().String(), false, nil, p, b)
				select {
				case err := <-exited:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(clientTimeout):
					t.Error("the gateway has not exited")
				}
			})
		}
	}
}

// runInetd runs cmd with the connection c as standard input and output.
func runInetd(cmd *exec.Cmd, c *net.TCPConn) error {
	f, err := c.File()
	c.Close()
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout = f, f
	err = cmd.Start()
	f.Close()
	if err != nil {
		return err
	}
	return cmd.Wait()
}
