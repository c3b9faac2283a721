package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var sandboxCost = &comparison{title: fmt.Sprintf("the workers' sandbox, median of paired rounds, %d clients", clients), columns: []string{"with", "without"}}

func init() { tables = append(tables, sandboxCost) }

// BenchmarkSandbox compares the same gateway with and without the sandbox. The
// sandbox should cost at most 5 % (a ratio of 1.05).
func BenchmarkSandbox(b *testing.B) {
	l := theLab.open(b)
	without := withoutSandbox(b)
	ping := get("/sched/v0.0.43/ping")
	b.Run("serve", func(b *testing.B) {
		servers := []server{l.startGateway(b, "sandbox"), l.startBuild(b, without, "nosandbox")}
		for _, x := range []struct {
			name string
			load
		}{
			{"ping, kept alive", load{request: ping, keepAlive: true, count: 3000}},
			{"ping, a new connection per request", load{request: ping, count: 1500}},
			{"one node, kept alive", load{request: get("/sched/v0.0.43/node/" + l.Node), keepAlive: true, count: 2000}},
		} {
			b.Run(x.name, func(b *testing.B) { compare(b, sandboxCost, x.name, servers, x.load) })
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
			l.startLocalBuild(b, l.bin, "sandbox-start", "worker_per_connection", firstUser, serve...),
			l.startLocalBuild(b, without, "nosandbox-start", "worker_per_connection", firstUser, serve...),
		}
		const name = "start of a worker, and one ping"
		b.Run(name, func(b *testing.B) {
			compare(b, sandboxCost, name, servers, load{request: ping, count: 100, local: true})
		})
	})
}

// withoutSandbox builds the programs without the sandbox and returns their
// directory.
func withoutSandbox(b *testing.B) string {
	b.Helper()
	dir := filepath.Join(theLab.Dir, "nosandbox")
	must(b, os.MkdirAll(dir, 0o755))
	programs, err := filepath.Glob("../cmd/schedrestd*")
	must(b, err)
	build := exec.Command("go", append([]string{"build", "-tags", "nosandbox", "-trimpath", "-buildvcs=false", "-o", dir + "/"}, programs...)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // a program built with cgo can't drop the capabilities of all its threads
	if text, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	must(b, os.Chmod(dir, 0o755))
	return dir
}
