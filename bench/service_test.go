package bench

import (
	"fmt"
	"io"
	"net"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"schedrestd/bundled/ctld/process"
)

var service = &comparison{title: "peak memory of a gateway, MB", columns: []string{"all processes", "largest process"}}

func init() { tables = append(tables, service) }

// Bodies and lists of BenchmarkService. A body has at most 500,000 values and is at
// most 50 MiB long.
const (
	serviceJobs = 5 * manyJobs
	bodyValues  = 450_000
	longBody    = 48 << 20
	shortBody   = 1 << 20
)

// demand contains the numbers of clients of each kind that use a gateway at the same
// time. Each belongs to one of several users.
type demand struct {
	lists, values, long, short int
	reloads                    int
}

// BenchmarkService measures the memory of all processes of a gateway together, under
// the load that needs most memory. MemoryMax= in the units follows from the result.
func BenchmarkService(b *testing.B) {
	l := theLab.open(b)
	port := startListController(b, 0, serviceJobs)
	accounts := systemAccounts(b)
	var headers []string
	for _, a := range accounts {
		u, err := user.LookupId(strconv.Itoa(int(a.uid)))
		must(b, err)
		token, err := l.Token(b.Context(), u.Username, time.Hour)
		must(b, err)
		headers = append(headers, "X-SCHED-USER-TOKEN: "+token+"\r\n")
	}
	all := demand{lists: 60, values: 8, long: 8, short: 48}
	withReloads := all
	withReloads.reloads = 3
	for _, x := range []struct {
		name   string
		demand demand
		local  bool
	}{
		{name: "no clients"},
		{name: "60 slow readers of lists of 100,000 jobs", demand: demand{lists: 60}},
		{name: "one body of 48 MiB at a time", demand: demand{long: 1}},
		{name: "8 bodies of 450,000 values", demand: demand{values: 8}},
		{name: "8 bodies of 48 MiB", demand: demand{long: 8}},
		{name: "124 bodies of 1 MiB", demand: demand{short: 124}},
		{name: "all of these, 124 clients", demand: all},
		{name: "all of these, and three reloads", demand: withReloads},
		{name: "`become_user`: ten users, each a body of 48 MiB and one of 450,000 values", demand: demand{long: 10, values: 10}, local: true},
	} {
		b.Run(x.name, func(b *testing.B) {
			name := fmt.Sprintf("service-%d", len(service.rows))
			var s server
			if x.local {
				s, headers = l.startLocal(b, name, "become_user", func(client int) account { return accounts[client%len(accounts)] }), make([]string, len(accounts))
			} else {
				s = l.startForController(b, port, name, "-t", "4") // two workers
			}
			sum, largest := x.demand.measure(b, s, headers)
			service.add(row{name: x.name, unit: "MB", figures: []float64{sum, largest}})
			b.ReportMetric(0, "ns/op")
		})
	}
}

// measure lets the clients send their requests again and again. It returns the peak
// memory of all processes of s and that of the largest one.
func (c demand) measure(b *testing.B, s server, headers []string) (sum, largest float64) {
	quit := make(chan struct{})
	var wait sync.WaitGroup
	start := func(count int, method, path, body string, step func(net.Conn) error) {
		for i := range count {
			text := fmt.Sprintf("%s /sched/v0.0.43/%s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
				method, path, len(body), headers[i%len(headers)], body)
			wait.Go(func() {
				for {
					if conn, err := s.dial(i); err == nil {
						slowly(text, step)(conn, quit)
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
	buffer := make([]byte, 3<<10) // all clients share it
	piece := func(c net.Conn) error { _, err := io.ReadFull(c, buffer); return err }
	whole := func(c net.Conn) error {
		if _, err := io.Copy(io.Discard, c); err != nil {
			return err
		}
		return io.EOF
	}
	start(c.lists, "GET", "jobs", "", piece)
	start(c.values, "POST", "job/submit", `{"job":{"environment":["`+strings.Repeat(`A=0123456789012345","`, bodyValues)+`B=1"]}}`, whole)
	start(c.long, "POST", "job/submit", `{"job":{"script":"`+strings.Repeat("x", longBody)+`"}}`, whole)
	start(c.short, "POST", "job/submit", `{"job":{"script":"`+strings.Repeat("x", shortBody-100)+`"}}`, whole)
	const duration = 20 * time.Second
	for begin, reloads := time.Now(), 0; time.Since(begin) < duration; time.Sleep(50 * time.Millisecond) {
		if reloads < c.reloads && time.Since(begin) > time.Duration(reloads+1)*duration/5 {
			must(b, syscall.Kill(s.pids[0], syscall.SIGHUP))
			reloads++
		}
		now, one := familyMemory(s.pids[0])
		sum, largest = max(sum, now), max(largest, one)
	}
	close(quit)
	wait.Wait()
	return sum, largest
}

// familyMemory returns the memory in MB of a process with its descendants, and that
// of the largest of them (PSS).
func familyMemory(pid int) (sum, largest float64) {
	list, _ := process.Descendants(pid) // of processes that exit meanwhile, nothing is counted
	for _, st := range append(list, process.Stat{PID: pid}) {
		mb := float64(process.Resident([]process.Stat{st}, true)) / (1 << 20)
		sum, largest = sum+mb, max(largest, mb)
	}
	return sum, largest
}
