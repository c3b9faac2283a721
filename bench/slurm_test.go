package bench

import (
	"fmt"
	"testing"
	"time"
)

// These tables compare this gateway with Slurm's gateway. Both receive the same
// requests and use the controller of the real cluster that slurmlab_test.go
// describes. A ratio above 1 always means that this gateway is better. The
// table slurmCrowd contains only this gateway.
var (
	slurmSmall = &comparison{title: fmt.Sprintf("real Slurm, median of paired rounds, %d clients; ratio: times better", clients), columns: gatewayColumns}
	slurmLists = &comparison{title: "real Slurm, one client, median of paired rounds; ratio: times better", columns: gatewayColumns}
	slurmCrowd = &comparison{title: fmt.Sprintf("real Slurm, %d job lists at once, median", listsAtOnce), columns: gatewayColumns[:1]}
)

var gatewayColumns = []string{"schedrestd", "slurmrestd"}

func init() { tables = append(tables, slurmSmall, slurmLists, slurmCrowd) }

// manyJobs is the minimum number of jobs in the list of all jobs. Slurm's
// gateway needs 20 seconds and almost 3 GB for one such list.
const (
	manyJobs    = 20_000
	listsAtOnce = 8
)

func BenchmarkSlurmPingKeptAlive(b *testing.B) {
	slurm.open(b).compare(b, "ping", slurmLoad{path: "/ping", keepAlive: true, count: 2000})
}

func BenchmarkSlurmPingConnectionEach(b *testing.B) {
	slurm.open(b).compare(b, "ping", slurmLoad{path: "/ping", count: 1500})
}

func BenchmarkSlurmNodeKeptAlive(b *testing.B) {
	slurm.open(b).compare(b, "one node", slurmLoad{path: "/node/node1", keepAlive: true, count: 1500})
}

func BenchmarkSlurmNodeConnectionEach(b *testing.B) {
	slurm.open(b).compare(b, "one node", slurmLoad{path: "/node/node1", count: 1500})
}

// BenchmarkSlurmPingAtRate measures latencies at a rate of requests that is
// typical of a portal. This load leaves the machine mostly idle. In the other
// benchmarks the machine is busy, so the slowest answers are those that wait
// for a CPU.
func BenchmarkSlurmPingAtRate(b *testing.B) {
	slurm.open(b).compare(b, "ping", slurmLoad{path: "/ping", keepAlive: true, count: 1500, interval: portalInterval})
}

func BenchmarkSlurmNodeAtRate(b *testing.B) {
	slurm.open(b).compare(b, "one node", slurmLoad{path: "/node/node1", count: 1500, interval: portalInterval})
}

// portalInterval is the interval between two requests from the same client. At
// this interval, all clients together send 500 requests per second.
const portalInterval = clients * time.Second / 500

// BenchmarkSlurmNodesKeptAlive measures requests for the list of all nodes. To
// get enough nodes, start the lab with "lab-up SUITE --nodes 5000".
func BenchmarkSlurmNodesKeptAlive(b *testing.B) {
	slurm.open(b).list(b, "nodes", slurmLoad{path: "/nodes", keepAlive: true, count: 1, recordMark: `"hostname"`}, b.N)
}

func BenchmarkSlurmNodesConnectionEach(b *testing.B) {
	slurm.open(b).list(b, "nodes", slurmLoad{path: "/nodes", count: 1, recordMark: `"hostname"`}, b.N)
}

// BenchmarkSlurmJobs measures requests for the list of all jobs. It sends only
// one request to Slurm's gateway, which does not free the memory of a list.
// That gateway also takes as long for one list as this gateway takes for a
// hundred.
func BenchmarkSlurmJobs(b *testing.B) {
	l := slurm.open(b)
	l.fillJobs(b, manyJobs)
	l.list(b, "jobs", slurmLoad{path: "/jobs", count: 1, recordMark: `"job_id"`}, 1)
}

// BenchmarkSlurmJobsAtOnce measures concurrent requests for the list of all
// jobs. It measures only this gateway, because slurmrestd exhausted the
// machine's memory and was killed at 22 GB.
func BenchmarkSlurmJobsAtOnce(b *testing.B) {
	l := slurm.open(b)
	l.fillJobs(b, manyJobs)
	s := l.startSchedrestd(b)
	lists := slurmLoad{path: "/jobs", count: listsAtOnce}
	var durations, firstBytes, cpu []float64
	for b.Loop() {
		start, before := time.Now(), s.cpu(b)
		answers := lists.run(b, l, s)
		durations = append(durations, time.Since(start).Seconds())
		cpu = append(cpu, (s.cpu(b)-before).Seconds()/listsAtOnce)
		firstBytes = append(firstBytes, 1000*percentileOf(answers, 1, firstByteSeconds))
	}
	slurmCrowd.add(row{name: "all answered", unit: "s", figures: []float64{medianFloat(durations)}})
	slurmCrowd.add(row{name: "CPU for each", unit: "s", figures: []float64{medianFloat(cpu)}})
	slurmCrowd.add(row{name: "first byte of the last to have one", unit: "ms", figures: []float64{medianFloat(firstBytes)}})
	slurmCrowd.add(row{name: "peak memory of the largest process", unit: "MB", figures: []float64{s.peak(b)}})
	b.ReportMetric(s.peak(b), "peak-MB")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSlurmSubmitKeptAlive submits held jobs, so that it measures only how
// the jobs are accepted, not how they run. It runs after the list benchmarks,
// because its jobs would lengthen those lists.
func BenchmarkSlurmSubmitKeptAlive(b *testing.B) {
	slurm.open(b).compare(b, "submit", slurmLoad{path: "/job/submit", body: heldJob, keepAlive: true, count: 400})
}

func BenchmarkSlurmSubmitConnectionEach(b *testing.B) {
	slurm.open(b).compare(b, "submit", slurmLoad{path: "/job/submit", body: heldJob, count: 400})
}

// BenchmarkSlurmSmallMemory reports the peak memory that both gateways have
// used in all the short benchmarks, so it must run after those benchmarks.
func BenchmarkSlurmSmallMemory(b *testing.B) {
	l := slurm.open(b)
	servers := l.pair(b)
	g, r := servers[0].peak(b), servers[1].peak(b)
	slurmSmall.add(row{name: "peak memory of the largest process, after all of these", unit: "MB", figures: []float64{g, r}, ratio: r / g})
	for b.Loop() {
		continue // the figure does not change
	}
	b.ReportMetric(g, "peak-MB")
	b.ReportMetric(0, "ns/op")
}

// pairedResults contains the results of all rounds, keyed by the name of a
// figure. Each figure has two lists of results: first those of this gateway,
// then those of Slurm's gateway.
type pairedResults struct {
	order  []figure
	values map[string]*[2][]float64
}

// A figure describes a measured quantity: its name, its unit, and whether a
// higher value is better.
type figure struct {
	name, unit     string
	higherIsBetter bool
}

func (p *pairedResults) add(f figure, index int, value float64) {
	if p.values == nil {
		p.values = map[string]*[2][]float64{}
	}
	if p.values[f.name] == nil {
		p.values[f.name] = &[2][]float64{}
		p.order = append(p.order, f)
	}
	p.values[f.name][index] = append(p.values[f.name][index], value)
}

// addTo adds all figures to the table c. The ratio of the two gateways is
// usually the median of the ratios of all rounds. If one gateway was measured
// in fewer rounds than the other, addTo uses the ratio of the two medians
// instead.
func (p *pairedResults) addTo(b *testing.B, c *comparison, prefix string) {
	for _, f := range p.order {
		v := p.values[f.name]
		g, r := medianFloat(v[0]), medianFloat(v[1])
		ratios := []float64{improvement(f, g, r)}
		if len(v[0]) == len(v[1]) {
			ratios = nil
			for i := range v[0] {
				ratios = append(ratios, improvement(f, v[0][i], v[1][i]))
			}
		}
		line := row{name: prefix + ": " + f.name, unit: f.unit, figures: []float64{g, r}, ratio: medianFloat(ratios)}
		if len(ratios) > 1 {
			line.low, line.high = interval(ratios)
			line.rounds = len(ratios)
		}
		c.add(line)
		b.ReportMetric(medianFloat(ratios), metric(f.name)+"-ratio")
	}
	b.ReportMetric(0, "ns/op") // omit ns/op, because the duration of a whole round is meaningless
}

// improvement returns how many times better our gateway is than the reference.
func improvement(f figure, gateway, reference float64) float64 {
	if f.higherIsBetter {
		return gateway / reference
	}
	return reference / gateway
}

var (
	figRate      = figure{"requests per second", "", true}
	figP50       = figure{"p50", "ms", false}
	figP99       = figure{"p99", "ms", false}
	figCPU       = figure{"CPU per request", "µs", false}
	figDuration  = figure{"to the end", "ms", false}
	figFirstByte = figure{"first byte of the body", "ms", false}
	figCPUTime   = figure{"CPU", "ms", false}
	figPeakFirst = figure{"peak memory after the first", "MB", false}
	figPeakAll   = figure{"peak memory after all", "MB", false}
)

// compare sends requests to both gateways in every round, and swaps their order
// after each round.
func (l *slurmLab) compare(b *testing.B, name string, v slurmLoad) {
	servers := l.pair(b)
	for _, s := range servers {
		v.run(b, l, s) // warm up
	}
	var p pairedResults
	for round := 0; b.Loop(); round++ {
		for i := range servers {
			index := (round + i) % 2
			before, start := servers[index].cpu(b), time.Now()
			answers := v.run(b, l, servers[index])
			elapsed, used := time.Since(start), servers[index].cpu(b)-before
			p.add(figRate, index, float64(v.count)/elapsed.Seconds())
			p.add(figP50, index, 1000*percentileOf(answers, 0.50, totalSeconds))
			p.add(figP99, index, 1000*percentileOf(answers, 0.99, totalSeconds))
			p.add(figCPU, index, float64(used.Microseconds())/float64(v.count))
		}
	}
	p.addTo(b, slurmSmall, name+", "+v.describe())
}

// list sends requests for a long list to both gateways. It starts new gateways,
// so that their peak memory shows the cost of a list. Slurm's gateway receives
// requests only in the first slurmRounds rounds, but always in the first round.
func (l *slurmLab) list(b *testing.B, name string, v slurmLoad, slurmRounds int) {
	servers := [2]server{l.startSchedrestd(b), l.startSlurmrestd(b)}
	var p pairedResults
	var firsts [2]response
	for round := 0; b.Loop(); round++ {
		for i := range servers {
			index := (round + i) % 2
			if index == 1 && round >= max(slurmRounds, 1) {
				continue
			}
			before := servers[index].cpu(b)
			a := v.run(b, l, servers[index])[0]
			p.add(figDuration, index, 1000*a.total.Seconds())
			p.add(figFirstByte, index, 1000*a.firstByte.Seconds())
			p.add(figCPUTime, index, 1000*(servers[index].cpu(b)-before).Seconds())
			if round == 0 {
				firsts[index] = a
				p.add(figPeakFirst, index, servers[index].peak(b))
			}
		}
	}
	for i, s := range servers {
		p.add(figPeakAll, i, s.peak(b))
	}
	if firsts[0].records != firsts[1].records || firsts[0].records == 0 {
		b.Errorf("%s lists %d %s, %s lists %d", servers[0].name, firsts[0].records, name, servers[1].name, firsts[1].records)
	}
	p.addTo(b, slurmLists, fmt.Sprintf("%d %s (%d and %d MB), %s", firsts[0].records, name, firsts[0].size>>20, firsts[1].size>>20, v.describe()))
}
