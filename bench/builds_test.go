package bench

import (
	"fmt"
	"os"
	"testing"
)

var builds = &comparison{title: fmt.Sprintf("another build (BENCH_BASE), median of paired rounds, %d clients", clients), columns: []string{"this build", "the other"}}

func init() { tables = append(tables, builds) }

// BenchmarkBuilds compares this build with another build, such as the last
// release. BENCH_BASE is the directory with the other build's programs. These
// must accept the options that this benchmark uses. Without BENCH_BASE the
// benchmark is skipped.
func BenchmarkBuilds(b *testing.B) {
	other := os.Getenv("BENCH_BASE")
	if other == "" {
		b.Skip("BENCH_BASE names no directory with the programs of another build")
	}
	l := theLab.open(b)
	ping := get("/sched/v0.0.43/ping")
	b.Run("serve", func(b *testing.B) {
		both := []server{l.with(b, "this-build"), l.built(b, other, "other-build")}
		l.occupy(b)
		for _, x := range []struct {
			what string
			load
		}{
			{"ping, kept alive", load{request: ping, kept: true, count: 3000}},
			{"ping, a connection each", load{request: ping, count: 1500}},
			{"one node, kept alive", load{request: get("/sched/v0.0.43/node/" + l.Node), kept: true, count: 2000}},
			{"submit, kept alive", load{request: post("/sched/v0.0.43/job/submit", l.waiting()), kept: true, count: 160, after: l.cancelWaiting}},
		} {
			b.Run(x.what, func(b *testing.B) { compare(b, builds, x.what, both, x.load) })
		}
		now, then := both[0].memory(b), both[1].memory(b)
		for i, what := range []string{"parent, resident", "other processes, proportional"} {
			builds.add(row{what: what, unit: "MB", figures: []float64{now[i], then[i]}, ratio: now[i] / then[i]})
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
			l.localOf(b, l.bin, "this-build-start", "worker_per_connection", one, serve...),
			l.localOf(b, other, "other-build-start", "worker_per_connection", one, serve...),
		}
		const what = "a worker started, and one ping"
		b.Run(what, func(b *testing.B) { compare(b, builds, what, both, load{request: ping, count: 100, local: true}) })
	})
}
