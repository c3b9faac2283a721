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

	"schedrestd/ctld/process"
	"schedrestd/demo/site"
	"schedrestd/integration/harness"
)

// Intervals between kills.
const (
	workerEvery     = time.Second // every fifth time all workers
	keeperEvery     = 5 * time.Second
	controllerEvery = 20 * time.Second
)

// chaosPatience is how long a client waits for an answer, or for the end of the
// connection, before it reports a hang. It is longer than every time limit of
// the gateway.
const chaosPatience = time.Minute

// chaos is the state of the test: a gateway under load, and the counts of its
// processes that were killed.
type chaos struct {
	*harness.Secure
	t      *testing.T
	users  []chaosUser
	jobs   *chaosJobs
	counts chaosCounts
	watch  *chaosWatch
	lasts  time.Duration
	over   chan struct{} // closed when the load ends
	lists  <-chan time.Time
	// Number of restarts of the controller so far. A job has survived a restart
	// if this number has grown since the submission was answered.
	restarts chaosCount

	workersKilled, keepersKilled, controllersKilled chaosCount
}

// chaosUser is a user who sends requests.
type chaosUser struct {
	name, token string
	submits     bool // the controller accepts jobs of this user
	sees        bool // the controller shows this user other users' jobs
}

// may reports whether u may see jobs of that user.
func (u chaosUser) may(user string) bool { return u.sees || user == u.name }

// TestChaos checks that, while workers, the keeper and the controller are
// killed repeatedly, each request gets its correct answer or a refusal in the
// envelope, or its connection is closed. Afterwards the gateway's parent must
// not keep resources of killed processes.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	c := newChaos(t)
	c.warm()
	c.watch = newChaosWatch(t, c.Daemons["schedrestd"].PID(), c.Dispatcher())
	defer func() { t.Logf("after %s:\n%s", c.lasts, c.table()) }()
	c.storm()
	c.verifyRecovery()
	c.watch.flat()
	c.counted()
	c.leftovers()
	c.audited()
	c.enough()
}

// newChaos starts the daemons. The variable CHAOS sets how long the test lasts.
func newChaos(t *testing.T) *chaos {
	c := &chaos{t: t, lasts: 30 * time.Second, over: make(chan struct{}), jobs: newChaosJobs()}
	if text := os.Getenv("CHAOS"); text != "" {
		var err error
		c.lasts, err = time.ParseDuration(text)
		harness.Must(t, err)
	}
	c.Secure = harness.NewSecure(t)
	c.restartGateway()
	c.users = c.everybody()
	c.counts.seen = map[string]bool{}
	c.counts.counts = map[string]int{}
	return c
}

// restartGateway restarts the gateway with penalties and the audit log, as in
// production. A worker's crash counts as an offence of its clients, so the
// clients of this test would be blocked most of the time. They all have
// loopback addresses, so the gateway is configured to exempt these.
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

// everybody returns at least two users. A controller that does not run as root
// accepts only jobs of its own user; the other users only look at them.
func (c *chaos) everybody() []chaosUser {
	users := []chaosUser{{name: c.Owner, token: c.chaosToken(c.Owner), submits: true, sees: true}}
	for _, name := range []string{"games", "daemon"} {
		if name != c.Owner {
			users = append(users, chaosUser{name: name, token: c.chaosToken(name), submits: os.Geteuid() == 0})
		}
	}
	return users
}

// warm makes each kind of client send a request, so that the parent has all
// resources that it keeps permanently.
func (c *chaos) warm() {
	c.t.Helper()
	for _, client := range c.clients() {
		client.ping()
		client.hangUp()
	}
}

// storm applies load and kills processes for the test's duration.
func (c *chaos) storm() {
	lists := time.NewTicker(max(time.Second, c.lasts/100)) // not more often, because lists become long, and other requests must be tested, too
	defer lists.Stop()
	c.lists = lists.C
	var clients, others sync.WaitGroup
	for i, client := range c.clients() {
		clients.Go(func() { client.run(i) })
	}
	parent := c.Daemons["schedrestd"].PID()
	controller := c.Daemons["schedctld"]
	others.Go(func() { c.watch.run(c.over, c.lasts) })
	others.Go(func() {
		c.each(workerEvery, func(n int) { c.workersKilled.add(killed(parent, "schedrestd-work", n%5 == 4)) })
	})
	others.Go(func() {
		c.each(keeperEvery, func(int) { c.keepersKilled.add(killed(parent, "schedrestd-keep", false)) })
	})
	others.Go(func() {
		c.each(controllerEvery, func(int) {
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
	select {
	case <-time.After(c.lasts):
	case <-c.Daemons["schedrestd"].Done():
		c.t.Error("the parent has exited")
	}
	close(c.over)
	clients.Wait()
	others.Wait()
	c.Daemons["schedctld"] = controller
}

// each divides the time until the load ends into intervals of the given length.
// It calls f in the middle of each interval.
func (c *chaos) each(every time.Duration, f func(n int)) {
	next := time.NewTimer(every / 2)
	defer next.Stop()
	for n := 0; ; n++ {
		select {
		case <-c.over:
			return
		case <-next.C:
			next.Reset(every)
			f(n)
		}
	}
}

// killed kills descendants of parent whose names begin with name: all of them,
// or only one. It returns how many it has killed.
func killed(parent int, name string, all bool) (n int) {
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

// verifyRecovery checks, after the load has ended, that everything works again,
// and that each job whose submission was answered exists once.
func (c *chaos) verifyRecovery() {
	c.t.Helper()
	c.Daemons["schedctld"].Kill() // the last answered jobs must survive a restart, too
	c.Up(c.Ctld)
	c.restarts.add(1)
	c.over = make(chan struct{})
	late := time.AfterFunc(2*chaosPatience, func() { close(c.over) })
	defer late.Stop()
	for i, client := range c.clients() {
		client.number = 1000 + i
		if !client.ping() || client.user.submits && !client.submit() || !client.look() {
			c.t.Errorf("%s is not served after the load, over %s", client.user.name, client.kind)
		}
		client.hangUp()
	}
	client := c.clients()[0]
	client.list()
	client.hangUp()
}

// enough fails the test if too little happened to prove anything.
func (c *chaos) enough() {
	c.t.Helper()
	for _, k := range []struct {
		what  string
		n     int
		every time.Duration
	}{
		{"workers", c.workersKilled.get(), workerEvery},
		{"keepers", c.keepersKilled.get(), keeperEvery},
		{"controllers", c.controllersKilled.get(), controllerEvery},
	} {
		if least := max(1, int(c.lasts/k.every)/3); k.n < least {
			c.t.Errorf("%d %s were killed, want at least %d", k.n, k.what, least)
		}
	}
	// Refusals are not required, because the next worker may be ready in time
	// for every request.
	for _, what := range []string{"submit", "look", "pry", "ping", "list", "cancel", "survived", "closed"} {
		if c.counts.of(what) == 0 {
			c.t.Errorf("nothing was counted as %q", what)
		}
	}
	for _, kind := range chaosKinds {
		if c.counts.of("answered, "+kind.name) < int(c.lasts/time.Second) {
			c.t.Errorf("%d requests were answered by %s", c.counts.of("answered, "+kind.name), kind.name)
		}
	}
}

// leftovers fails the test if a process outlives the gateway.
func (c *chaos) leftovers() {
	c.t.Helper()
	c.Daemons["schedrestd"].Stop()
	harness.Eventually(c.t, "none of the gateway's processes is left", func() bool {
		for pid, began := range c.watch.processes {
			if st, err := process.ReadStat(pid); err == nil && st.Start == began {
				return false
			}
		}
		return true
	})
}

// table returns the counts of all events as text.
func (c *chaos) table() string {
	var b strings.Builder
	line := func(what string, v any) { fmt.Fprintf(&b, "%-42s %v\n", what, v) }
	line("killed: workers, keepers, controllers", fmt.Sprint(c.workersKilled.get(), " ", c.keepersKilled.get(), " ", c.controllersKilled.get()))
	c.counts.each(line)
	c.watch.each(line)
	return b.String()
}
