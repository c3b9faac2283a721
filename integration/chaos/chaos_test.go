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

// These are the intervals between kills.
const (
	workerEvery     = time.Second // each fifth time all of them
	keeperEvery     = 5 * time.Second
	controllerEvery = 20 * time.Second
)

// chaosPatience is how long a client waits for an answer, or for the
// connection's end, before it reports a hang. It is above every limit of the
// gateway's own.
const chaosPatience = time.Minute

// chaos is a gateway under load whose processes are killed, and what is known of it.
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
	// The controller's restarts so far. A job that was answered before a
	// restart has survived it.
	restarts chaosCount

	workersKilled, keepersKilled, controllersKilled chaosCount
}

// chaosUser is a user who sends requests.
type chaosUser struct {
	name, token string
	submits     bool // the controller accepts this user's jobs
	sees        bool // and shows this user other users' jobs
}

// may reports whether u may see that user's jobs.
func (u chaosUser) may(user string) bool { return u.sees || user == u.name }

// TestChaos checks that, while workers, the keeper and the controller are
// killed repeatedly, each request gets its correct answer or a refusal in the
// envelope, or its connection is closed. The parent keeps no resources of
// killed processes.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	c := newChaos(t)
	c.warm()
	c.watch = newChaosWatch(t, c.Daemons["schedrestd"].PID())
	defer func() { t.Logf("after %s:\n%s", c.lasts, c.table()) }()
	c.storm()
	c.verifyRecovery()
	c.watch.flat()
	c.counted()
	c.leftovers()
	c.audited()
	c.enough()
}

// newChaos starts the daemons. CHAOS is how long it is to last.
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

// restartGateway restarts the gateway configured as in production, with
// penalties and the audit log. A worker's crash counts as an offence of its
// clients. All of these clients have loopback addresses and are exempt;
// otherwise they would be blocked for most of the test, as they should be
// elsewhere.
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
// accepts only its own user's jobs; the other users only look at them.
func (c *chaos) everybody() []chaosUser {
	users := []chaosUser{{name: c.Owner, token: c.chaosToken(c.Owner), submits: true, sees: true}}
	for _, name := range []string{"games", "daemon"} {
		if name != c.Owner {
			users = append(users, chaosUser{name: name, token: c.chaosToken(name), submits: os.Geteuid() == 0})
		}
	}
	return users
}

// warm makes each kind of client send a request, so that the parent has
// everything that it keeps permanently.
func (c *chaos) warm() {
	c.t.Helper()
	for _, client := range c.clients() {
		client.ping()
		client.hangUp()
	}
}

// storm applies load and kills processes for the test's duration.
func (c *chaos) storm() {
	lists := time.NewTicker(max(time.Second, c.lasts/100)) // they grow, and are not all that is to be seen
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
			time.Sleep(time.Second) // it is missed
			next, err := site.Start(c.Ctld)
			if err == nil {
				controller = next
				err = next.Await(c.t.Context())
			}
			if err != nil {
				c.t.Errorf("the controller does not come back: %v", err)
			}
			c.restarts.add(1)
		})
	})
	select {
	case <-time.After(c.lasts):
	case <-c.Daemons["schedrestd"].Ended():
		c.t.Error("the parent has ended")
	}
	close(c.over)
	clients.Wait()
	others.Wait()
	c.Daemons["schedctld"] = controller
}

// each calls f in the middle of every such time until the load ends.
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

// killed kills children of parent that have that name, one or all, and gives how many it has killed.
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

// verifyRecovery checks, after the load has ended, that everything works again, and that
// each answered job exists once.
func (c *chaos) verifyRecovery() {
	c.t.Helper()
	c.Daemons["schedctld"].Kill() // what was answered last has to come through one as well
	c.Up(c.Ctld)
	c.restarts.add(1)
	c.over = make(chan struct{})
	late := time.AfterFunc(2*chaosPatience, func() { close(c.over) })
	defer late.Stop()
	for i, client := range c.clients() {
		client.number = 1000 + i
		if !client.ping() || client.user.submits && !client.submit() || !client.look() {
			c.t.Errorf("%s is not served after it, by %s", client.user.name, client.kind)
		}
		client.hangUp()
	}
	client := c.clients()[0]
	client.list()
	client.hangUp()
}

// enough fails the test when too little happened for it to say anything.
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
			c.t.Errorf("%d %s were killed, and should have been %d at least", k.n, k.what, least)
		}
	}
	// Nothing need be refused: the next worker may be there in time for every request.
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

// leftovers fails the test when a process outlives the gateway.
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
