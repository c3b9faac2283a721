package bench

import (
	"fmt"
	"testing"
	"time"
)

// These tables compare this gateway with Slurm's own. Both get the same
// requests and use the same real controller: see slurmlab_test.go. A ratio
// above 1 always means that this gateway is better.
var (
	slurmSmall = &comparison{title: fmt.Sprintf("real Slurm, median of paired rounds, %d clients; ratio: times better", clients), columns: ours2theirs}
	slurmLists = &comparison{title: "real Slurm, one client, median of paired rounds; ratio: times better", columns: ours2theirs}
	slurmCrowd = &comparison{title: fmt.Sprintf("real Slurm, %d job lists at once, median", listsAtOnce), columns: ours2theirs[:1]}
)

var ours2theirs = []string{"schedrestd", "slurmrestd"}

func init() { tables = append(tables, slurmSmall, slurmLists, slurmCrowd) }

// manyJobs is the minimum length of the list of jobs. Slurm's gateway takes 20
// seconds and almost 3 GB for one such list.
const (
	manyJobs    = 20_000
	listsAtOnce = 8
)

func BenchmarkSlurmPingKeptAlive(b *testing.B) {
	slurm.open(b).compare(b, "ping", volley{path: "/ping", kept: true, count: 2000})
}

func BenchmarkSlurmPingConnectionEach(b *testing.B) {
	slurm.open(b).compare(b, "ping", volley{path: "/ping", count: 1500})
}

func BenchmarkSlurmNodeKeptAlive(b *testing.B) {
	slurm.open(b).compare(b, "one node", volley{path: "/node/node1", kept: true, count: 1500})
}

func BenchmarkSlurmNodeConnectionEach(b *testing.B) {
	slurm.open(b).compare(b, "one node", volley{path: "/node/node1", count: 1500})
}

// BenchmarkSlurmPingAtRate measures latencies under the load of a portal's
// users, while the machine is mostly idle. The other benchmarks keep it busy,
// so that their slowest answers wait for a CPU.
func BenchmarkSlurmPingAtRate(b *testing.B) {
	slurm.open(b).compare(b, "ping", volley{path: "/ping", kept: true, count: 1500, interval: unhurried})
}

func BenchmarkSlurmNodeAtRate(b *testing.B) {
	slurm.open(b).compare(b, "one node", volley{path: "/node/node1", count: 1500, interval: unhurried})
}

// unhurried is the interval between two requests of a client. At this interval,
// all clients together send 500 requests per second.
const unhurried = clients * time.Second / 500

// BenchmarkSlurmNodesKeptAlive measures lists of all nodes of the lab. To get
// enough nodes, start the lab with "lab-up SUITE --nodes 5000".
func BenchmarkSlurmNodesKeptAlive(b *testing.B) {
	slurm.open(b).list(b, "nodes", volley{path: "/nodes", kept: true, count: 1, record: `"hostname"`}, b.N)
}

func BenchmarkSlurmNodesConnectionEach(b *testing.B) {
	slurm.open(b).list(b, "nodes", volley{path: "/nodes", count: 1, record: `"hostname"`}, b.N)
}

// BenchmarkSlurmJobs measures lists of all jobs. It requests only one list from
// Slurm's gateway, for two reasons. That gateway does not free the memory of a
// list, and it takes as long for one list as this gateway takes for a hundred.
func BenchmarkSlurmJobs(b *testing.B) {
	l := slurm.open(b)
	l.fill(b, manyJobs)
	l.list(b, "jobs", volley{path: "/jobs", count: 1, record: `"job_id"`}, 1)
}

// BenchmarkSlurmJobsAtOnce measures concurrent lists of all jobs. It measures
// only this gateway, because slurmrestd exhausted the machine's memory and was
// killed at 22 GB.
func BenchmarkSlurmJobsAtOnce(b *testing.B) {
	l := slurm.open(b)
	l.fill(b, manyJobs)
	s := l.ours(b)
	lists := volley{path: "/jobs", count: listsAtOnce}
	var took, first, cpu []float64
	for b.Loop() {
		begun, before := time.Now(), s.cpu(b)
		answers := lists.ask(b, l, s)
		took = append(took, time.Since(begun).Seconds())
		cpu = append(cpu, (s.cpu(b)-before).Seconds()/listsAtOnce)
		first = append(first, 1000*percentileOf(answers, 1, firstByte))
	}
	slurmCrowd.add(row{what: "all answered", unit: "s", figures: []float64{middle(took)}})
	slurmCrowd.add(row{what: "CPU for each", unit: "s", figures: []float64{middle(cpu)}})
	slurmCrowd.add(row{what: "first byte of the last to have one", unit: "ms", figures: []float64{middle(first)}})
	slurmCrowd.add(row{what: "peak memory of the largest process", unit: "MB", figures: []float64{s.peak(b)}})
	b.ReportMetric(s.peak(b), "peak-MB")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSlurmSubmitKeptAlive measures submissions of held jobs, so that only
// their acceptance is measured. It runs after the benchmarks of lists, because
// its jobs would lengthen those lists.
func BenchmarkSlurmSubmitKeptAlive(b *testing.B) {
	slurm.open(b).compare(b, "submit", volley{path: "/job/submit", body: heldJob, kept: true, count: 400})
}

func BenchmarkSlurmSubmitConnectionEach(b *testing.B) {
	slurm.open(b).compare(b, "submit", volley{path: "/job/submit", body: heldJob, count: 400})
}

// BenchmarkSlurmSmallMemory reports the peak memory after all short benchmarks,
// so it must run after them.
func BenchmarkSlurmSmallMemory(b *testing.B) {
	l := slurm.open(b)
	both := l.pair(b)
	g, r := both[0].peak(b), both[1].peak(b)
	slurmSmall.add(row{what: "peak memory of the largest process, after all of these", unit: "MB", figures: []float64{g, r}, ratio: r / g})
	for b.Loop() {
		continue // the figure does not change
	}
	b.ReportMetric(g, "peak-MB")
	b.ReportMetric(0, "ns/op")
}

// paired holds the results of all rounds by the name of the figure. For each
// figure there are two lists: ours first, then theirs.
type paired struct {
	order  []figure
	values map[string]*[2][]float64
}

// figure is a measured quantity: its name, its unit, and whether more is
// better.
type figure struct {
	name, unit string
	more       bool
}

func (p *paired) note(f figure, which int, value float64) {
	if p.values == nil {
		p.values = map[string]*[2][]float64{}
	}
	if p.values[f.name] == nil {
		p.values[f.name] = &[2][]float64{}
		p.order = append(p.order, f)
	}
	p.values[f.name][which] = append(p.values[f.name][which], value)
}

// into adds all figures to the table c. The ratio of the two gateways is
// usually the median of the ratios of all rounds. If one gateway was measured
// in fewer rounds than the other, the ratio is that of the gateways' medians.
func (p *paired) into(b *testing.B, c *comparison, what string) {
	for _, f := range p.order {
		v := p.values[f.name]
		g, r := middle(v[0]), middle(v[1])
		ratios := []float64{better(f, g, r)}
		if len(v[0]) == len(v[1]) {
			ratios = nil
			for i := range v[0] {
				ratios = append(ratios, better(f, v[0][i], v[1][i]))
			}
		}
		line := row{what: what + ": " + f.name, unit: f.unit, figures: []float64{g, r}, ratio: middle(ratios)}
		if len(ratios) > 1 {
			line.least, line.greatest = interval(ratios)
			line.rounds = len(ratios)
		}
		c.add(line)
		b.ReportMetric(middle(ratios), metric(f.name)+"-ratio")
	}
	b.ReportMetric(0, "ns/op") // the duration of a whole round has no meaning
}

// better returns how many times better ours is than theirs.
func better(f figure, ours, theirs float64) float64 {
	if f.more {
		return ours / theirs
	}
	return theirs / ours
}

var (
	figRate   = figure{"requests per second", "", true}
	figMiddle = figure{"p50", "ms", false}
	figTail   = figure{"p99", "ms", false}
	figCPU    = figure{"CPU per request", "µs", false}
	figTook   = figure{"to the end", "ms", false}
	figFirst  = figure{"first byte of the body", "ms", false}
	figWork   = figure{"CPU", "ms", false}
	figPeak   = figure{"peak memory after the first", "MB", false}
	figLater  = figure{"peak memory after all", "MB", false}
)

// compare sends requests to both gateways in rounds of alternating order.
func (l *slurmLab) compare(b *testing.B, what string, v volley) {
	both := l.pair(b)
	for _, s := range both {
		v.ask(b, l, s) // warm up
	}
	var p paired
	for round := 0; b.Loop(); round++ {
		for i := range both {
			which := (round + i) % 2
			before, begun := both[which].cpu(b), time.Now()
			answers := v.ask(b, l, both[which])
			took, used := time.Since(begun), both[which].cpu(b)-before
			p.note(figRate, which, float64(v.count)/took.Seconds())
			p.note(figMiddle, which, 1000*percentileOf(answers, 0.50, whole))
			p.note(figTail, which, 1000*percentileOf(answers, 0.99, whole))
			p.note(figCPU, which, float64(used.Microseconds())/float64(v.count))
		}
	}
	p.into(b, slurmSmall, what+", "+v.manner())
}

// list requests a long list from both gateways. It starts a new process of each
// gateway, so that the peak memory of that process is due to the list. Slurm's
// gateway gets a request in at most theirRounds rounds.
func (l *slurmLab) list(b *testing.B, what string, v volley, theirRounds int) {
	both := [2]server{l.ours(b), l.theirs(b)}
	var p paired
	var size [2]answered
	for round := 0; b.Loop(); round++ {
		for i := range both {
			which := (round + i) % 2
			if which == 1 && round >= max(theirRounds, 1) {
				continue
			}
			before := both[which].cpu(b)
			a := v.ask(b, l, both[which])[0]
			p.note(figTook, which, 1000*a.took.Seconds())
			p.note(figFirst, which, 1000*a.first.Seconds())
			p.note(figWork, which, 1000*(both[which].cpu(b)-before).Seconds())
			if round == 0 {
				size[which] = a
				p.note(figPeak, which, both[which].peak(b))
			}
		}
	}
	for i, s := range both {
		p.note(figLater, i, s.peak(b))
	}
	if size[0].records != size[1].records || size[0].records == 0 {
		b.Errorf("%s lists %d %s, %s lists %d", both[0].name, size[0].records, what, both[1].name, size[1].records)
	}
	p.into(b, slurmLists, fmt.Sprintf("%d %s (%d and %d MB), %s", size[0].records, what, size[0].size>>20, size[1].size>>20, v.manner()))
}
