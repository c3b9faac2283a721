package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"schedrestd/bundled/ctld/process"
	"schedrestd/bundled/demo/site"
	"schedrestd/integration/harness"
)

// Intervals between kills.
const (
	workerEvery     = time.Second // every fifth time all workers
	keeperEvery     = 5 * time.Second
	controllerEvery = 20 * time.Second
)

// answersPerKill is how many requests at least must be answered between two
// kills of workers. On a busy machine a request takes longer than workerEvery.
const answersPerKill = 50

// chaosTimeout is how long a client waits for an answer or for the end of the
// connection before it reports a hang. It is longer than every time limit of
// the gateway.
const chaosTimeout = time.Minute

// chaos is the state of the test: a gateway under load, and the numbers of
// processes that the test has killed.
type chaos struct {
	*harness.TLSLab
	t         *testing.T
	users     []chaosUser
	jobs      *chaosJobs
	counts    chaosCounts
	watch     *chaosWatch
	duration  time.Duration
	done      chan struct{} // closed when the load ends
	listTicks <-chan time.Time
	// The number of restarts of the controller so far. A job has survived a
	// restart if this number is higher than when its submission was answered.
	restarts chaosCount

	workersKilled, keepersKilled, controllersKilled chaosCount
}

// chaosUser is a user who sends requests.
type chaosUser struct {
	name, token string
	canSubmit   bool // the controller accepts jobs of this user
	seesAll     bool // the controller lets this user see other users' jobs
}

// maySee reports whether u may see the jobs of the given user.
func (u chaosUser) maySee(user string) bool { return u.seesAll || user == u.name }

// TestChaos kills workers, the keeper and the controller repeatedly. Each
// request must get the correct answer or a refusal in the usual JSON envelope,
// or its connection must be closed. Afterwards the gateway's parent must not
// keep resources of killed processes.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	c := newChaos(t)
	c.warmUp()
	c.watch = newChaosWatch(t, c.Daemons["schedrestd"].PID(), c.Dispatcher())
	defer func() { t.Logf("after %s:\n%s", c.duration, c.table()) }()
	c.applyLoad()
	c.verifyRecovery()
	c.watch.checkGrowth(c.duration)
	c.checkNoConns()
	c.checkNoProcesses()
	c.checkAuditLog()
	c.checkCoverage()
}

// newChaos starts the daemons. The variable CHAOS sets how long the test lasts
// at least. It lasts longer if it has not tested enough by then.
func newChaos(t *testing.T) *chaos {
	c := &chaos{t: t, duration: 10 * time.Second, done: make(chan struct{}), jobs: newChaosJobs()}
	if text := os.Getenv("CHAOS"); text != "" {
		var err error
		c.duration, err = time.ParseDuration(text)
		harness.Must(t, err)
	}
	c.TLSLab = harness.NewTLSLab(t)
	c.restartGateway()
	c.users = c.newUsers()
	c.counts.seen = map[string]bool{}
	c.counts.counts = map[string]int{}
	return c
}

// restartGateway restarts the gateway with penalties and the audit log, as in
// production. If a worker crashes, the gateway penalizes the worker's clients,
// so the clients of this test would be blocked most of the time. Their loopback
// addresses are therefore exempt.
func (c *chaos) restartGateway() {
	c.Daemons["schedrestd"].Stop()
	for i, v := range c.Restd.Env {
		if strings.HasPrefix(v, "SCHEDRESTD_PENALTIES=") {
			c.Restd.Env[i] = "SCHEDRESTD_EXEMPT=127.0.0.0/8"
		}
	}
	c.Restd.Env = append(c.Restd.Env, "SCHEDRESTD_AUDIT_LOG="+c.Log("audit"))
	c.Up(c.Restd)
}

// newUsers returns at least two users. A controller that does not run as root
// accepts jobs only from the user it runs as. In that case, the other users
// send only requests that change nothing.
func (c *chaos) newUsers() []chaosUser {
	users := []chaosUser{{name: c.Owner, token: c.chaosToken(c.Owner), canSubmit: true, seesAll: true}}
	for _, name := range []string{"games", "daemon"} {
		if name != c.Owner {
			users = append(users, chaosUser{name: name, token: c.chaosToken(name), canSubmit: os.Geteuid() == 0})
		}
	}
	return users
}

// warmUp makes each kind of client send a request. Afterwards the parent has
// all resources that it keeps permanently.
func (c *chaos) warmUp() {
	c.t.Helper()
	for _, client := range c.clients() {
		client.ping()
		client.closeConn()
	}
}

// applyLoad applies load and kills processes for the test's duration.
func (c *chaos) applyLoad() {
	lists := time.NewTicker(max(time.Second, c.duration/100)) // rarely, because lists become long and other requests must be tested, too
	defer lists.Stop()
	c.listTicks = lists.C
	var clients, killers sync.WaitGroup
	for i, client := range c.clients() {
		clients.Go(func() { client.run(i) })
	}
	parent := c.Daemons["schedrestd"].PID()
	controller := c.Daemons["schedctld"]
	killers.Go(func() { c.watch.run(c.done, c.duration) })
	killers.Go(func() {
		kills, answered := 0, 0
		c.runEvery(workerEvery, func() {
			if n := c.counts.get("answered"); n >= answered+answersPerKill {
				kills, answered = kills+1, n
				c.workersKilled.add(killDescendants(parent, "schedrestd-work", kills%5 == 0))
			}
		})
	})
	killers.Go(func() {
		c.runEvery(keeperEvery, func() { c.keepersKilled.add(killDescendants(parent, "schedrestd-keep", false)) })
	})
	killers.Go(func() {
		c.runEvery(controllerEvery, func() {
			controller.Kill()
			c.controllersKilled.add(1)
			time.Sleep(time.Second) // long enough for clients to notice
			next, err := site.Start(c.Ctld)
			if err == nil {
				controller = next
				err = next.WaitReady(c.t.Context())
			}
			if err != nil {
				c.t.Errorf("the controller does not start again: %v", err)
			}
			c.restarts.add(1)
		})
	})
	end := time.After(c.duration)
	for late := time.Now().Add(c.duration + 3*chaosTimeout); end != nil; {
		select {
		case <-end:
			// On a busy machine everything takes longer.
			if end = nil; len(c.missing()) > 0 && time.Now().Before(late) {
				end = time.After(100 * time.Millisecond)
			}
		case <-c.Daemons["schedrestd"].Done():
			c.t.Error("the parent has exited")
			end = nil
		}
	}
	close(c.done)
	clients.Wait()
	killers.Wait()
	c.Daemons["schedctld"] = controller
}

// runEvery divides the time until the load ends into intervals of the given
// length. It calls f in the middle of each interval.
func (c *chaos) runEvery(every time.Duration, f func()) {
	next := time.NewTimer(every / 2)
	defer next.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-next.C:
			next.Reset(every)
			f()
		}
	}
}

// killDescendants kills the descendants of parent whose names begin with name.
// Unless all is set, it kills only one of them. It returns the number of killed
// processes.
func killDescendants(parent int, name string, all bool) (n int) {
	list, _ := process.Descendants(parent)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, st := range list {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", st.PID))
		if st.State == 'Z' || !strings.HasPrefix(string(text), name) || syscall.Kill(st.PID, syscall.SIGKILL) != nil {
			continue
		}
		if n++; !all {
			break
		}
	}
	return n
}

// verifyRecovery runs after the load has ended. It checks that everything works
// again, and that each job whose submission was answered exists exactly once.
func (c *chaos) verifyRecovery() {
	c.t.Helper()
	c.Daemons["schedctld"].Kill() // the jobs that were answered last must survive a restart, too
	c.Up(c.Ctld)
	c.restarts.add(1)
	c.done = make(chan struct{})
	timer := time.AfterFunc(2*chaosTimeout, func() { close(c.done) })
	defer timer.Stop()
	for i, client := range c.clients() {
		client.number = 1000 + i
		if !client.ping() || client.user.canSubmit && !client.submit() || !client.getOwnJob() {
			c.t.Errorf("%s is not served after the load, over %s", client.user.name, client.kind)
		}
		client.closeConn()
	}
	client := c.clients()[0]
	client.list()
	client.closeConn()
}

// missing returns what the test must still kill or count before it has tested
// enough. Refusals are not required, because the next worker may be ready in
// time for every request.
func (c *chaos) missing() (list []string) {
	for _, k := range []struct {
		name  string
		n     int
		every time.Duration
	}{
		{"workers", c.workersKilled.get(), workerEvery},
		{"keepers", c.keepersKilled.get(), keeperEvery},
		{"controllers", c.controllersKilled.get(), controllerEvery},
	} {
		if minimum := max(1, int(c.duration/k.every)/3); k.n < minimum {
			list = append(list, fmt.Sprintf("%d %s were killed, want at least %d", k.n, k.name, minimum))
		}
	}
	for _, name := range []string{"submit", "look", "pry", "ping", "list", "cancel", "survived", "closed"} {
		if c.counts.get(name) == 0 {
			list = append(list, fmt.Sprintf("nothing was counted as %q", name))
		}
	}
	for _, kind := range chaosKinds {
		if n := c.counts.get("answered, " + kind.name); n < int(c.duration/time.Second) {
			list = append(list, fmt.Sprintf("%d requests were answered by %s", n, kind.name))
		}
	}
	return list
}

// checkCoverage fails the test if it has not tested enough.
func (c *chaos) checkCoverage() {
	c.t.Helper()
	for _, text := range c.missing() {
		c.t.Error(text)
	}
}

// checkNoProcesses fails the test if a process outlives the gateway.
func (c *chaos) checkNoProcesses() {
	c.t.Helper()
	c.Daemons["schedrestd"].Stop()
	harness.Eventually(c.t, "none of the gateway's processes is left", func() bool {
		for pid, start := range c.watch.processes {
			if st, err := process.ReadStat(pid); err == nil && st.Start == start {
				return false
			}
		}
		return true
	})
}

// table returns the counts of all events as text.
func (c *chaos) table() string {
	var b strings.Builder
	line := func(name string, v any) { fmt.Fprintf(&b, "%-42s %v\n", name, v) }
	line("killed: workers, keepers, controllers", fmt.Sprint(c.workersKilled.get(), " ", c.keepersKilled.get(), " ", c.controllersKilled.get()))
	c.counts.print(line)
	c.watch.print(line)
	return b.String()
}
