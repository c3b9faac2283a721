package bench

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"schedrestd/demo/site"
)

var caged = &comparison{title: fmt.Sprintf("the workers' cage, median of paired rounds, %d clients", clients), columns: []string{"with", "without", "least ratio", "greatest"}}

func init() { tables = append(tables, caged) }

// What the cage costs: the same gateway, and one that was built without. The aim is 1.05.
func BenchmarkCage(b *testing.B) {
	l := theLab.open(b)
	without := uncaged(b)
	ping := get("/sched/v0.0.43/ping")
	b.Run("serve", func(b *testing.B) {
		both := []server{l.caged(b, "caged", l.bin), l.caged(b, "uncaged", without)}
		for _, x := range []struct {
			what string
			load
		}{
			{"ping, kept alive", load{request: ping, kept: true, count: 9000}},
			{"ping, a connection each", load{request: ping, count: 4500}},
			{"one node, kept alive", load{request: get("/sched/v0.0.43/node/" + l.Node), kept: true, count: 6000}},
		} {
			b.Run(x.what, func(b *testing.B) { confined(b, x.what, both, x.load) })
		}
	})
	b.Run("start", func(b *testing.B) {
		if os.Geteuid() != 0 {
			b.Skip("needs root, to connect as a user")
		}
		users := people(b)
		one := func(int) someone { return users[0] }
		serve := []string{"-u", fmt.Sprint(users[0].uid), "-g", fmt.Sprint(users[0].gid)}
		both := []server{
			l.localOf(b, l.bin, "caged-start", "worker_per_connection", one, serve...),
			l.localOf(b, without, "uncaged-start", "worker_per_connection", one, serve...),
		}
		const what = "a worker started, and one ping"
		b.Run(what, func(b *testing.B) { confined(b, what, both, load{request: ping, count: 150, local: true}) })
	})
}

// uncaged is where the programs are that were built without the cage.
func uncaged(b *testing.B) string {
	b.Helper()
	dir := filepath.Join(theLab.Dir, "uncaged")
	must(b, os.MkdirAll(dir, 0o755))
	var programs []string
	for _, name := range []string{"schedrestd", "schedrestd-worker", "schedrestd-keeper"} {
		programs = append(programs, "schedrestd/cmd/"+name)
	}
	build := exec.Command("go", append([]string{"build", "-tags", "uncaged", "-trimpath", "-buildvcs=false", "-o", dir + "/"}, programs...)...)
	if text, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	must(b, os.Chmod(dir, 0o755))
	return dir
}

// caged starts the gateway of that directory's programs.
func (l *lab) caged(b *testing.B, name, bin string) server {
	b.Helper()
	ports, err := site.FreePorts(1)
	must(b, err)
	part := l.Schedrestd(bin, fmt.Sprintf("127.0.0.1:%d", ports[0]))
	part.Log = l.Log(name)
	part.Name = name
	d := l.start(b, part)
	b.Cleanup(func() { _ = d.Stop() })
	return serving(b, d, to(strings.TrimPrefix(d.At, "http://")))
}

// confined measures both in rounds, and adds what they have used.
func confined(b *testing.B, what string, both []server, l load) {
	for _, s := range both {
		measure(b, s, l) // warm up
	}
	samples := [2][]sample{}
	var ratios []float64
	for round := 0; b.Loop(); round++ {
		for i := range both {
			which := (round + i) % 2
			samples[which] = append(samples[which], measure(b, both[which], l))
		}
		ratios = append(ratios, samples[0][round].cpu/samples[1][round].cpu)
	}
	cpu := func(s sample) float64 { return s.cpu }
	low, high := interval(ratios)
	caged.add(row{what + ": CPU per request", "", []float64{median(samples[0], cpu), median(samples[1], cpu), low, high}, middle(ratios)})
	b.ReportMetric(middle(ratios), "cpu-ratio")
	b.ReportMetric(low, "least")
	b.ReportMetric(high, "greatest")
	b.ReportMetric(0, "ns/op")
}

// interval holds the median of what the list was drawn from with a probability of 95 % or more, whatever its
// distribution is: so many of n are below the median as heads fall in n throws. With fewer than 6 it is all of the list.
func interval(list []float64) (low, high float64) {
	list = slices.SortedFunc(slices.Values(list), cmp.Compare)
	n := len(list)
	rank, below, term := 0, 0.0, math.Pow(0.5, float64(n))
	for k := range n / 2 {
		if below += term; below > 0.025 {
			break
		}
		rank = k
		term *= float64(n-k) / float64(k+1)
	}
	return list[rank], list[n-1-rank]
}

// TestInterval: the ranks are those of the table of the sign test.
func TestInterval(t *testing.T) {
	for n, rank := range map[int]int{1: 0, 5: 0, 6: 0, 9: 1, 20: 5, 30: 9, 100: 39} {
		var list []float64
		for i := range n {
			list = append(list, float64(n-1-i))
		}
		if low, high := interval(list); low != float64(rank) || high != float64(n-1-rank) {
			t.Errorf("of %d: %g and %g", n, low, high)
		}
	}
}
