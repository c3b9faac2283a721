package bench

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"schedrestd/bundled/demo/site"
)

var (
	metricsCost  = &comparison{title: fmt.Sprintf("gateway metrics, median of paired rounds, %d clients", clients), columns: []string{"--metrics", "off"}}
	slurmMetrics = &comparison{title: "the cluster's metrics, real Slurm, one client, median", columns: []string{"schedrestd"}}
)

func init() { tables = append(tables, metricsCost, slurmMetrics) }

// BenchmarkMetrics measures the cost of the counters for --metrics. It sends
// the same requests to a gateway with this option and to one without it.
func BenchmarkMetrics(b *testing.B) {
	l := theLab.open(b)
	servers := []server{l.startWithMetrics(b, "counts", true), l.startWithMetrics(b, "does-not", false)}
	compare(b, metricsCost, "ping, kept alive", servers, load{request: get("/sched/v0.0.43/ping"), keepAlive: true, count: 3000})
	with, without := servers[0].memory(b), servers[1].memory(b)
	metricsCost.add(row{name: "parent, resident", unit: "MB", figures: []float64{with[0], without[0]}, ratio: with[0] / without[0]})
	metricsCost.add(row{name: "all other processes, proportional", unit: "MB", figures: []float64{with[1], without[1]}, ratio: with[1] / without[1]})
}

// The same for lists of 200 jobs.
func BenchmarkMetricsOfLists(b *testing.B) {
	l := theLab.open(b)
	ports, err := site.FreePorts(1)
	must(b, err)
	port := startListController(b, 10, 200)
	servers := []server{l.startForController(b, port, "lists-counts", "--metrics", fmt.Sprintf("127.0.0.1:%d", ports[0])), l.startForController(b, port, "lists-does-not")}
	compare(b, metricsCost, "list of 200 jobs, kept alive", servers, load{request: get("/sched/v0.0.43/jobs"), keepAlive: true, count: 400})
}

// startWithMetrics starts a gateway with or without metrics.
func (l *lab) startWithMetrics(b *testing.B, name string, metrics bool) server {
	b.Helper()
	ports, err := site.FreePorts(2)
	must(b, err)
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	part := l.Schedrestd(l.bin, address)
	if part.Log = l.Log(name); metrics {
		part.Args = append([]string{"--metrics", fmt.Sprintf("127.0.0.1:%d", ports[1])}, part.Args...)
	}
	d := l.start(b, part)
	b.Cleanup(func() { _ = d.Stop() })
	return newServer(b, d, tcpDialer(address))
}

// BenchmarkSlurmClusterMetrics measures scrapes of the cluster's metrics, which
// cover all jobs and nodes. To get enough nodes, start the lab with "lab-up
// SUITE --nodes 5000".
func BenchmarkSlurmClusterMetrics(b *testing.B) {
	l := slurm.open(b)
	l.fillJobs(b, manyJobs)
	s := l.startSchedrestd(b)
	for _, query := range []string{"", "?by=user,account"} {
		var durations []float64
		for range max(b.N, 3) {
			start := time.Now()
			text, err := l.fetchPath(context.Background(), s.dial, "/metrics/cluster"+query)
			must(b, err)
			durations = append(durations, 1000*time.Since(start).Seconds())
			if !bytes.Contains(text, []byte("\nslurm_jobs ")) {
				b.Fatalf("%.300s", text)
			}
		}
		slurmMetrics.add(row{name: "scrape" + query, unit: "ms", figures: []float64{medianFloat(durations)}})
	}
	slurmMetrics.add(row{name: "peak memory of the largest process", unit: "MB", figures: []float64{s.peak(b)}})
	b.ReportMetric(s.peak(b), "peak-MB")
	b.ReportMetric(0, "ns/op")
}
