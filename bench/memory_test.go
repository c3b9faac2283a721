package bench

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"schedrestd/bundled/demo/site"
)

var memory = &comparison{title: "memory in MB", columns: []string{"1000 connections", "none"}}

const openConns = 1000

// BenchmarkMemory measures the memory that open connections use after one
// request on each.
func BenchmarkMemory(b *testing.B) {
	l := theLab.open(b)
	ports, err := site.FreePorts(1)
	must(b, err)
	part := l.Schedrestd(l.bin, fmt.Sprintf("127.0.0.1:%d", ports[0]))
	part.Args = append([]string{"--max-connections", strconv.Itoa(openConns)}, part.Args...)
	part.Log = l.Log("memory")
	d := l.start(b, part)
	b.Cleanup(func() { _ = d.Stop() })
	s := newServer(b, d, tcpDialer(fmt.Sprintf("127.0.0.1:%d", ports[0])))
	for b.Loop() {
		without := s.memory(b)
		conns := l.holdConns(b, s)
		with := s.memory(b)
		for _, c := range conns {
			c.Close()
		}
		if len(memory.rows) > 0 {
			continue // record only the first round, because later rounds reuse its memory
		}
		memory.add(row{name: "parent, resident", unit: "MB", figures: []float64{with[0], without[0]}, ratio: with[0] / without[0]})
		memory.add(row{name: "both workers, proportional", unit: "MB", figures: []float64{with[1], without[1]}, ratio: with[1] / without[1]})
	}
	b.ReportMetric(memory.rows[0].figures[0], "parent-MB")
	b.ReportMetric(memory.rows[1].figures[0], "workers-MB")
	b.ReportMetric(0, "ns/op")
}

// holdConns opens connections and sends one request on each.
func (l *lab) holdConns(b *testing.B, s server) []io.Closer {
	b.Helper()
	var list []io.Closer
	for range openConns {
		c, err := s.dial(0)
		must(b, err)
		list = append(list, c)
		_, err = fmt.Fprintf(c, get("/sched/v0.0.43/ping"), "X-SCHED-USER-TOKEN: "+l.token+"\r\n")
		must(b, err)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		must(b, err)
		body, err := io.ReadAll(resp.Body)
		must(b, err)
		if resp.StatusCode != http.StatusOK {
			b.Fatal(site.ResponseError(http.MethodGet, "ping", resp.Status, body))
		}
	}
	return list
}

// memory returns two sizes in MB: the resident set size (RSS) of the parent,
// and the sum of the proportional set sizes (PSS) of all its descendants.
func (s server) memory(b *testing.B) [2]float64 {
	b.Helper()
	var sum [2]float64
	for i, pid := range s.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		must(b, err)
		name := "Rss:"
		if i > 0 {
			name = "Pss:"
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if f[0] == name {
				kb, err := strconv.Atoi(f[1])
				must(b, err)
				sum[min(i, 1)] += float64(kb) / 1024
			}
		}
	}
	return sum
}
