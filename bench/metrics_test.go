package bench

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"schedrestd/demo/site"
)

var (
	metricsOn    = &comparison{title: fmt.Sprintf("gateway metrics, median of paired rounds, %d clients", clients), columns: []string{"--metrics", "off"}}
	slurmMetrics = &comparison{title: "the cluster's metrics, real Slurm, one client, median", columns: []string{"schedrestd"}}
)

func init() { tables = append(tables, metricsOn, slurmMetrics) }

// BenchmarkMetrics measures the cost of counting for --metrics. It sends the
// same requests to a gateway that counts and to one that does not.
func BenchmarkMetrics(b *testing.B) {
	l := theLab.open(b)
	both := []server{l.counting(b, "counts", true), l.counting(b, "does-not", false)}
	compare(b, metricsOn, "ping, kept alive", both, load{request: get("/sched/v0.0.43/ping"), kept: true, count: 3000})
	with, without := both[0].memory(b), both[1].memory(b)
	metricsOn.add(row{what: "parent, resident", unit: "MB", figures: []float64{with[0], without[0]}, ratio: with[0] / without[0]})
	metricsOn.add(row{what: "all other processes, proportional", unit: "MB", figures: []float64{with[1], without[1]}, ratio: with[1] / without[1]})
}

// The same for lists of 200 jobs.
func BenchmarkMetricsOfLists(b *testing.B) {
	l := theLab.open(b)
	ports, err := site.FreePorts(1)
	must(b, err)
	port := newListing(b, 10, 200)
	both := []server{l.before(b, port, "lists-counts", "--metrics", fmt.Sprintf("127.0.0.1:%d", ports[0])), l.before(b, port, "lists-does-not")}
	compare(b, metricsOn, "list of 200 jobs, kept alive", both, load{request: get("/sched/v0.0.43/jobs"), kept: true, count: 400})
}

// counting starts a gateway with or without metrics.
func (l *lab) counting(b *testing.B, name string, metrics bool) server {
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
	return serving(b, d, to(address))
}

// BenchmarkSlurmClusterMetrics measures a scrape of all jobs and nodes. To get
// enough nodes, start the lab with "lab-up SUITE --nodes 5000".
func BenchmarkSlurmClusterMetrics(b *testing.B) {
	l := slurm.open(b)
	l.fill(b, manyJobs)
	s := l.ours(b)
	for _, query := range []string{"", "?by=user,account"} {
		var took []float64
		for range max(b.N, 3) {
			begun := time.Now()
			text, err := l.page(context.Background(), s.dial, "/metrics/cluster"+query)
			must(b, err)
			took = append(took, 1000*time.Since(begun).Seconds())
			if !bytes.Contains(text, []byte("\nslurm_jobs ")) {
				b.Fatalf("%.300s", text)
			}
		}
		slurmMetrics.add(row{what: "scrape" + query, unit: "ms", figures: []float64{middle(took)}})
	}
	slurmMetrics.add(row{what: "peak memory of the largest process", unit: "MB", figures: []float64{s.peak(b)}})
	b.ReportMetric(s.peak(b), "peak-MB")
	b.ReportMetric(0, "ns/op")
}
