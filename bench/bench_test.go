// Package bench measures the cost of separate processes: the same requests, in
// the same run, to the gateway (parent and workers) and to the same handler in
// one plain process, both with the same controller.
//
// Machines and moments differ, so only ratios within one run are meaningful.
// Each benchmark's iterations are paired rounds, first one then the other, in
// changing order; the median is reported. make bench prints the results as a
// table.
package bench

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(singleEnv); text != "" {
		serveSingle(text)
	}
	status := m.Run()
	theLab.close()
	slurm.close()
	printTables()
	os.Exit(status)
}

// row is one line of a table: what was measured, a figure for each column, and
// the ratio of the first two when it is meaningful.
type row struct {
	what, unit string
	figures    []float64
	ratio      float64 // 0: none

	least, greatest float64 // bounds of the ratio at a probability of 95 %; 0: not computed
	rounds          int     // that the bounds come from
}

// comparison is a table of measurements of the same run.
type comparison struct {
	title   string
	columns []string
	rows    []row
}

func (c *comparison) add(r row) { c.rows = append(c.rows, r) }

// tables are printed in this order.
var tables = []*comparison{pairs, reference, kinds, crowd, memory}

var pairs = &comparison{title: fmt.Sprintf("cost of separate processes, median of paired rounds, %d clients", clients), columns: []string{"parent + workers", "one process"}}

func printTables() {
	for _, c := range tables {
		if len(c.rows) == 0 {
			continue
		}
		fmt.Printf("\n| %s | %s | ratio |\n|---|%s---:|\n", c.title, strings.Join(c.columns, " | "), strings.Repeat("---:|", len(c.columns)))
		for _, r := range c.rows {
			fmt.Printf("| %s |", r.what)
			for _, f := range r.figures {
				fmt.Printf(" %.4g %s |", f, r.unit)
			}
			if r.ratio != 0 {
				fmt.Printf(" %.2f", r.ratio)
			}
			if r.least != 0 {
				fmt.Printf(" (%.2f–%.2f, %d rounds)", r.least, r.greatest, r.rounds)
			}
			fmt.Println(" |")
		}
	}
	fmt.Println()
}

// clients is the number of concurrent connections.
const clients = 16

// A persistent connection, as clients of a busy site have. The aim is 1.15.
func BenchmarkPingKeptAlive(b *testing.B) {
	pair(b, "ping, kept alive", load{request: get("/sched/v0.0.43/ping"), kept: true, count: 3000})
}

// A connection for each request, as curl in a script.
func BenchmarkPingConnectionEach(b *testing.B) {
	pair(b, "ping, a connection each", load{request: get("/sched/v0.0.43/ping"), count: 1500})
}

// Each job waits behind one that occupies all processors, so that the
// submission is measured and not the job. Waiting jobs are cancelled after
// each round: the controller limits how many it holds.
func BenchmarkSubmit(b *testing.B) {
	l := theLab.open(b)
	l.occupy(b)
	pair(b, "submit, kept alive", load{request: post("/sched/v0.0.43/job/submit", l.waiting()), kept: true, count: 160, after: l.cancelWaiting})
}

// sample is the result of one round of one of the two.
type sample struct {
	cpu  float64 // microseconds per request, of all serving processes
	rate float64 // requests per second
}

// pair compares the gateway with the single process.
func pair(b *testing.B, what string, l load) {
	lab := theLab.open(b)
	compare(b, pairs, what, []server{lab.gateway(b), lab.single(b)}, l)
}

// measure runs l once against s.
func measure(b *testing.B, s server, l load) sample {
	b.Helper()
	before, begun := s.cpu(b), time.Now()
	if err := l.run(s.dial); err != nil {
		s.fail(b, err)
	}
	took, used := time.Since(begun), s.cpu(b)-before
	if l.after != nil {
		l.after(b)
	}
	return sample{
		cpu:  float64(used.Microseconds()) / float64(l.count),
		rate: float64(l.count) / took.Seconds(),
	}
}

func median(samples []sample, of func(sample) float64) float64 {
	var list []float64
	for _, s := range samples {
		list = append(list, of(s))
	}
	return middle(list)
}

func middle(list []float64) float64 {
	list = slices.SortedFunc(slices.Values(list), cmp.Compare)
	if n := len(list); n%2 == 0 {
		return (list[n/2-1] + list[n/2]) / 2
	}
	return list[len(list)/2]
}
