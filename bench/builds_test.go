package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var buildCost = &comparison{title: fmt.Sprintf("another build (BENCH_BASE), median of paired rounds, %d clients", clients), columns: []string{"this build", "the other"}}

func init() { tables = append(tables, buildCost) }

// BenchmarkBuilds compares this build with another build, such as the last
// release. The environment variable BENCH_BASE names the directory with the
// other build's programs. These programs must accept the options that the
// benchmark uses. Without BENCH_BASE the benchmark is skipped.
func BenchmarkBuilds(b *testing.B) {
	baseDir := os.Getenv("BENCH_BASE")
	if baseDir == "" {
		b.Skip("BENCH_BASE names no directory with the programs of another build")
	}
	l := theLab.open(b)
	thisDir, otherDir := copyPrograms(b, l.bin, filepath.Join(l.Dir, "programs-this")), copyPrograms(b, baseDir, filepath.Join(l.Dir, "programs-other"))
	ping := get("/sched/v0.0.43/ping")
	b.Run("serve", func(b *testing.B) {
		servers := []server{l.startBuild(b, thisDir, "this-build"), l.startBuild(b, otherDir, "other-build")}
		l.occupyNode(b)
		for _, x := range []struct {
			name string
			load
		}{
			{"ping, kept alive", load{request: ping, keepAlive: true, count: 3000}},
			{"ping, a new connection per request", load{request: ping, count: 1500}},
			{"one node, kept alive", load{request: get("/sched/v0.0.43/node/" + l.Node), keepAlive: true, count: 2000}},
			{"submit, kept alive", load{request: post("/sched/v0.0.43/job/submit", l.waitingJob()), keepAlive: true, count: 160, after: l.cancelWaiting}},
		} {
			b.Run(x.name, func(b *testing.B) { compare(b, buildCost, x.name, servers, x.load) })
		}
		current, base := servers[0].memory(b), servers[1].memory(b)
		for i, name := range []string{"parent, resident", "other processes, proportional"} {
			buildCost.add(row{name: name, unit: "MB", figures: []float64{current[i], base[i]}, ratio: current[i] / base[i]})
		}
	})
	b.Run("start", func(b *testing.B) {
		if os.Geteuid() != 0 {
			b.Skip("needs root, to connect as a user")
		}
		users := systemAccounts(b)
		firstUser := func(int) account { return users[0] }
		serve := []string{"-u", fmt.Sprint(users[0].uid), "-g", fmt.Sprint(users[0].gid)}
		servers := []server{
			l.startLocalBuild(b, thisDir, "this-build-start", "worker_per_connection", firstUser, serve...),
			l.startLocalBuild(b, otherDir, "other-build-start", "worker_per_connection", firstUser, serve...),
		}
		const name = "start of a worker, and one ping"
		b.Run(name, func(b *testing.B) { compare(b, buildCost, name, servers, load{request: ping, count: 100, local: true}) })
		const inTurn = name + ", one after the other"
		b.Run(inTurn, func(b *testing.B) {
			compare(b, buildCost, inTurn, servers, load{request: ping, count: 40, local: true, singleClient: true})
		})
	})
}

// copyPrograms copies the programs in the directory from to the new directory
// to, which it returns. A program that was just linked can need a millisecond
// more for its start than a copy of it, because its pages in the kernel's cache
// are smaller. So only copies can be compared.
func copyPrograms(b *testing.B, from, to string) string {
	b.Helper()
	must(b, os.Mkdir(to, 0o755))
	must(b, os.CopyFS(to, os.DirFS(from)))
	list, err := os.ReadDir(from)
	must(b, err)
	for _, e := range list {
		info, err := e.Info()
		must(b, err)
		must(b, os.Chmod(filepath.Join(to, e.Name()), info.Mode())) // programs that others can read would be copied to memory
	}
	return to
}
