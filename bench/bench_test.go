// Package bench measures the cost of the gateway's separate processes. In each
// run it sends the same requests to two servers: the gateway (parent,
// dispatcher, services and workers), and a single process that runs the
// gateway's handler. Both servers use the same controller.
//
// Results differ between machines and between runs, so only ratios within one
// run are meaningful. Each iteration of a benchmark consists of two rounds, one
// for each server. The order of the servers alternates from iteration to
// iteration. The benchmark reports the median. "make bench" prints the results
// as a table.
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
	if role := os.Getenv(passEnv); role != "" {
		servePassed(role)
	}
	status := m.Run()
	theLab.close()
	slurm.close()
	printTables()
	os.Exit(status)
}

// row is one line of a table: the name of the measurement, a figure for each
// column, and the ratio of the first two figures if it is meaningful.
type row struct {
	name, unit string
	figures    []float64
	ratio      float64 // 0: not meaningful

	low, high float64 // 95 % confidence interval of the ratio; 0: not computed
	rounds    int     // number of rounds from which the interval was computed
}

// comparison is a table of measurements of one run.
type comparison struct {
	title   string
	columns []string
	rows    []row
}

func (c *comparison) add(r row) { c.rows = append(c.rows, r) }

// tables lists the tables in the order in which they are printed.
var tables = []*comparison{pairs, passes, inetdRuns, kinds, crowd, memory}

var pairs = &comparison{title: fmt.Sprintf("cost of separate processes, median of paired rounds, %d clients", clients), columns: []string{"parent + workers", "one process"}}

func printTables() {
	for _, c := range tables {
		if len(c.rows) == 0 {
			continue
		}
		fmt.Printf("\n| %s | %s | ratio |\n|---|%s---:|\n", c.title, strings.Join(c.columns, " | "), strings.Repeat("---:|", len(c.columns)))
		for _, r := range c.rows {
			fmt.Printf("| %s |", r.name)
			for _, f := range r.figures {
				fmt.Printf(" %.4g %s |", f, r.unit)
			}
			if r.ratio != 0 {
				fmt.Printf(" %.2f", r.ratio)
			}
			if r.low != 0 {
				fmt.Printf(" (%.2f–%.2f, %d rounds)", r.low, r.high, r.rounds)
			}
			fmt.Println(" |")
		}
	}
	fmt.Println()
}

// clients is the number of concurrent connections.
const clients = 16

// BenchmarkPingKeptAlive measures requests on persistent connections, which
// clients at a busy site use. The ratio of the gateway's cost to that of the
// single process should be at most 1.15.
func BenchmarkPingKeptAlive(b *testing.B) {
	pair(b, "ping, kept alive", load{request: get("/sched/v0.0.43/ping"), keepAlive: true, count: 3000})
}

// BenchmarkPingConnectionEach measures requests that each use a new connection,
// as when a script runs curl for each request.
func BenchmarkPingConnectionEach(b *testing.B) {
	pair(b, "ping, a new connection per request", load{request: get("/sched/v0.0.43/ping"), count: 1500})
}

// BenchmarkSubmit measures submissions. One running job occupies all
// processors, so that no submitted job starts during the measurement. The
// waiting jobs are cancelled after each round, because the controller limits
// their number.
func BenchmarkSubmit(b *testing.B) {
	l := theLab.open(b)
	l.occupyNode(b)
	pair(b, "submit, kept alive", load{request: post("/sched/v0.0.43/job/submit", l.waitingJob()), keepAlive: true, count: 160, after: l.cancelWaiting})
}

// sample is the result of one round of one server.
type sample struct {
	cpu  float64 // microseconds per request, of all serving processes
	rate float64 // requests per second
}

// pair compares the gateway with the single process.
func pair(b *testing.B, name string, l load) {
	lab := theLab.open(b)
	compare(b, pairs, name, []server{lab.gateway(b), lab.single(b)}, l)
}

// measure sends the requests of l to s once.
func measure(b *testing.B, s server, l load) sample {
	b.Helper()
	before, start := s.cpu(b), time.Now()
	if err := l.run(s.dial); err != nil {
		s.fail(b, err)
	}
	elapsed, used := time.Since(start), s.cpu(b)-before
	if l.after != nil {
		l.after(b)
	}
	return sample{
		cpu:  float64(used.Microseconds()) / float64(l.count),
		rate: float64(l.count) / elapsed.Seconds(),
	}
}

func median(samples []sample, value func(sample) float64) float64 {
	var list []float64
	for _, s := range samples {
		list = append(list, value(s))
	}
	return medianFloat(list)
}

func medianFloat(list []float64) float64 {
	list = slices.SortedFunc(slices.Values(list), cmp.Compare)
	if n := len(list); n%2 == 0 {
		return (list[n/2-1] + list[n/2]) / 2
	}
	return list[len(list)/2]
}
