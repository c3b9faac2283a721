package bench

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/bundled/demo/site"
	"schedrestd/bundled/demo/thread"
)

var hostileClients = &comparison{title: "another build (BENCH_BASE) beside hostile clients, median of paired rounds", columns: []string{"this build", "the other"}}

func init() { tables = append(tables, hostileClients) }

// Numbers of clients in BenchmarkHostileClients. allSlots is the default of
// --max-connections.
const (
	healthyClients = 30
	healthyPings   = 300
	stalledClients = 500
	allSlots       = 124
	unreadLists    = 200
	slowReaders    = 20
	floods         = 8
)

// hostile is a kind of hostile clients. The method start starts them.
type hostile struct {
	count int
	again bool // a client whose connection ends connects again
	tls   bool // it connects with TLS, and offers only HTTP/2
	talk  func(c net.Conn, quit <-chan struct{})
}

// target is a gateway that also listens with TLS.
type target struct {
	server
	dialTLS dialer
}

// BenchmarkHostileClients compares this build with another one, as
// BenchmarkBuilds does, while hostile clients of another user take up the
// gateway's connections and memory. The healthy clients open a connection for
// each ping. The controller lists 20,000 jobs.
func BenchmarkHostileClients(b *testing.B) {
	baseDir := os.Getenv("BENCH_BASE")
	if baseDir == "" {
		b.Skip("BENCH_BASE names no directory with the programs of another build")
	}
	if os.Geteuid() != 0 {
		b.Skip("needs root, to connect as several users")
	}
	l := theLab.open(b)
	users := systemAccounts(b)
	if len(users) < 2 {
		b.Skip("this machine has too few users to connect as")
	}
	port := startListController(b, 0, manyJobs)
	config := l.writeCertificate(b, filepath.Dir(l.Conf()))
	config.NextProtos = []string{"h2"}
	var pair [2]target
	for i, bin := range []string{l.bin, baseDir} {
		part := *l
		part.bin = copyPrograms(b, bin, filepath.Join(l.Dir, fmt.Sprintf("hostile-programs-%d", i)))
		ports, err := site.FreePorts(1)
		must(b, err)
		address := fmt.Sprintf("127.0.0.1:%d", ports[0])
		certificate := filepath.Join(filepath.Dir(l.Conf()), "cert.pem")
		line := fmt.Sprintf("TLSParameters=restd_cert_file=%s,restd_cert_key_file=%s\n", certificate, strings.Replace(certificate, "cert", "key", 1))
		pair[i] = target{part.startWithLines(b, port, fmt.Sprintf("hostile-%d", i), line, "https://"+address), tlsDialer(address, config)}
	}
	token := "X-SCHED-USER-TOKEN: " + l.token + "\r\n"
	ping, list := fmt.Sprintf(get("/sched/v0.0.43/ping"), token), fmt.Sprintf(get("/sched/v0.0.43/jobs"), token)
	stalled := hostile{count: stalledClients, again: true, talk: send("GET / HTTP/1.1\r\nX: a")}
	idle := hostile{count: allSlots, again: true, talk: send(ping)}
	body := fmt.Sprintf("POST /sched/v0.0.43/job/submit HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: 500000\r\n%s\r\n", token)
	slowBody := slowly(body, func(c net.Conn) error {
		_, err := io.WriteString(c, strings.Repeat(" ", 1<<10))
		return err
	})
	buffer := make([]byte, 3<<10)
	slowRead := slowly(list, func(c net.Conn) error {
		_, err := io.ReadFull(c, buffer) // the content does not matter, so all clients share the buffer
		return err
	})
	for _, x := range []struct {
		name  string
		crowd []hostile
	}{
		{"none", nil},
		{"500 stalled and 124 idle clients", []hostile{stalled, idle}},
		{"124 slow bodies of one source", []hostile{{count: allSlots, again: true, talk: slowBody}}},
		{"200 lists that are not read", []hostile{{count: unreadLists, talk: sendUnread(list)}}},
		{"20 slow readers of lists", []hostile{{count: slowReaders, again: true, talk: slowRead}}},
		{"8 floods of HTTP/2 streams", []hostile{{count: floods, again: true, tls: true, talk: floodHTTP2}}},
	} {
		b.Run(x.name, func(b *testing.B) { compareBeside(b, x.name, pair, users, x.crowd) })
	}
}

// result is what one round measured of the healthy clients' gateway.
type result struct {
	p50, p99 float64 // latencies of the pings, in ms
	cpu      float64 // µs for each ping
	memory   float64 // MB, without the parent
	failed   float64 // number of pings
}

// compareBeside measures the healthy clients of both servers, beside the
// hostile clients in crowd. Each of these kinds is a user of its own.
func compareBeside(b *testing.B, name string, servers [2]target, users []account, crowd []hostile) {
	var results [2][]result
	for round := 0; b.Loop(); round++ {
		for i := range servers {
			s := servers[(round+i)%2]
			quit := make(chan struct{})
			var wait sync.WaitGroup
			for k, h := range crowd {
				dial := s.dial
				if h.tls {
					dial = s.dialTLS
				}
				h.start(dial, users[k], quit, &wait)
			}
			if crowd != nil {
				time.Sleep(2 * time.Second) // until all have sent their requests
			}
			results[(round+i)%2] = append(results[(round+i)%2], measureHealthy(b, s.server))
			close(quit)
			wait.Wait()
		}
	}
	for _, f := range []struct {
		name, unit string
		value      func(result) float64
	}{
		{"p50", "ms", func(r result) float64 { return r.p50 }},
		{"p99", "ms", func(r result) float64 { return r.p99 }},
		{"CPU per ping", "µs", func(r result) float64 { return r.cpu }},
		{"memory without the parent", "MB", func(r result) float64 { return r.memory }},
	} {
		var values [2][]float64
		var ratios []float64
		for i := range results[0] {
			this, other := f.value(results[0][i]), f.value(results[1][i])
			values[0], values[1] = append(values[0], this), append(values[1], other)
			ratios = append(ratios, this/other)
		}
		r := row{name: name + ": " + f.name, unit: f.unit, figures: []float64{medianFloat(values[0]), medianFloat(values[1])}, ratio: medianFloat(ratios), rounds: len(ratios)}
		r.low, r.high = interval(ratios)
		hostileClients.add(r)
	}
	failed := row{name: name + ": pings that failed, in all rounds", figures: make([]float64, 2)}
	for i, list := range results {
		for _, r := range list {
			failed.figures[i] += r.failed
		}
	}
	hostileClients.add(failed)
	b.ReportMetric(0, "ns/op")
}

// measureHealthy sends pings of several clients, each on a new connection.
func measureHealthy(b *testing.B, s server) result {
	b.Helper()
	var mu sync.Mutex // guards latencies
	var latencies []float64
	var sent, failed atomic.Int32
	var wait sync.WaitGroup
	before := s.cpu(b)
	for range healthyClients {
		wait.Go(func() {
			for sent.Add(1) <= healthyPings {
				start := time.Now()
				if err := (load{request: get("/sched/v0.0.43/ping"), count: 1, singleClient: true}).run(s.dial); err != nil {
					failed.Add(1)
					b.Log(s.name, err)
				}
				elapsed := time.Since(start).Seconds() * 1000
				mu.Lock()
				latencies = append(latencies, elapsed)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	used := s.cpu(b) - before
	return result{percentile(latencies, 0.50), percentile(latencies, 0.99), float64(used.Microseconds()) / healthyPings, s.memory(b)[1], float64(failed.Load())}
}

// start starts the clients, which run until quit is closed.
func (h hostile) start(dial dialer, user account, quit <-chan struct{}, wait *sync.WaitGroup) {
	for i := range h.count {
		wait.Go(func() {
			for {
				var c net.Conn
				err := thread.RunAs(user.uid, user.gid, func() (err error) {
					c, err = dial(i)
					return err
				})
				if err == nil {
					h.talk(c, quit)
					c.Close()
				}
				if !h.again {
					<-quit
				}
				select {
				case <-quit:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
}

// closeAtEnd closes c when quit is closed.
func closeAtEnd(c net.Conn, quit <-chan struct{}) (ended func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-quit:
		case <-done:
		}
		c.Close()
	}()
	return func() { close(done) }
}

// send sends text, and reads until the gateway closes the connection.
func send(text string) func(net.Conn, <-chan struct{}) {
	return func(c net.Conn, quit <-chan struct{}) {
		defer closeAtEnd(c, quit)()
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
	}
}

// sendUnread sends text, and reads nothing.
func sendUnread(text string) func(net.Conn, <-chan struct{}) {
	return func(c net.Conn, quit <-chan struct{}) {
		_, _ = io.WriteString(c, text)
		<-quit
	}
}

// slowly sends text, and then calls step ten times a second until it fails.
func slowly(text string, step func(c net.Conn) error) func(net.Conn, <-chan struct{}) {
	return func(c net.Conn, quit <-chan struct{}) {
		defer closeAtEnd(c, quit)()
		for _, err := io.WriteString(c, text); err == nil; err = step(c) {
			select {
			case <-quit:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// floodHTTP2 resets each stream as soon as it has opened it, and repeats this
// until the gateway closes the connection.
func floodHTTP2(c net.Conn, quit <-chan struct{}) {
	defer closeAtEnd(c, quit)()
	go func() { _, _ = io.Copy(io.Discard, c) }()
	frame := func(kind, flags byte, stream uint32, payload string) string {
		head := []byte{0, 0, byte(len(payload)), kind, flags}
		return string(binary.BigEndian.AppendUint32(head, stream)) + payload
	}
	const request = "\x82\x87\x04\x08/healthz\x01\x05bench" // GET, https, path and authority in HPACK
	_, err := io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(4, 0, 0, ""))
	for stream := uint32(1); err == nil; stream += 2 {
		_, err = io.WriteString(c, frame(1, 5, stream, request)+frame(3, 0, stream, "\x00\x00\x00\x08"))
	}
}
