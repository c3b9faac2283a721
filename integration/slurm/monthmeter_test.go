package slurm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"schedrestd/bundled/ctld/process"
)

// monthMeter measures what the clients of TestMonth get, and what the cluster uses for it.
type monthMeter struct {
	x       *month
	cancel  context.CancelFunc
	sampler sync.WaitGroup
	length  time.Duration

	mu    sync.Mutex // guards the fields below
	kinds map[string]*monthKind

	samples   sync.Mutex           // guards the fields below
	rpcs      map[string]int       // by type of message
	counted   map[string]int       // those of the controller that runs now
	ticks     map[[2]uint64]uint64 // processor time by process id and start
	roles     map[[2]uint64]string // names of the programs
	memory    map[string]uint64    // in the last sample, bytes
	peak      map[string]uint64    // bytes
	processes map[string]int       // in the last sample
}

// monthKind is what clients of a kind got.
type monthKind struct {
	statuses map[string]int
	times    []time.Duration // until the answer began, of those that succeeded
}

func newMonthMeter(x *month) *monthMeter {
	e := &monthMeter{x: x, kinds: map[string]*monthKind{}, rpcs: map[string]int{}, ticks: map[[2]uint64]uint64{}, roles: map[[2]uint64]string{}, peak: map[string]uint64{}}
	var ctx context.Context
	ctx, e.cancel = context.WithCancel(x.t.Context())
	e.counted = e.readRPCs()
	e.sampler.Go(func() {
		for pause(ctx, 2*time.Second) {
			e.countRPCs()
			e.sample()
		}
	})
	return e
}

// finish takes the last samples.
func (e *monthMeter) finish(length time.Duration) {
	e.cancel()
	e.sampler.Wait()
	e.length = length
	e.countRPCs()
	e.sample()
}

func (e *monthMeter) count(kind, status string, elapsed time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.kinds[kind]
	if k == nil {
		k = &monthKind{statuses: map[string]int{}}
		e.kinds[kind] = k
	}
	k.statuses[status]++
	if status == "200" || status == "304" {
		k.times = append(k.times, elapsed)
	}
}

// good returns how many requests of each kind have succeeded, except of those kinds that may
// have nothing to send.
func (e *monthMeter) good() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := map[string]int{}
	for _, kind := range []string{"poll", "submission", "wait for a job", "wait for a change"} {
		if k := e.kinds[kind]; k != nil {
			n[kind] = len(k.times)
		} else {
			n[kind] = 0
		}
	}
	return n
}

var sdiagLine = regexp.MustCompile(`(?m)^\s+(\S+)\s+\(\s*\d+\) count:(\d+)`)

// readRPCs returns the numbers of messages that the controller in charge has received since
// its start, or nil if none answers.
func (e *monthMeter) readRPCs() map[string]int {
	out, err := e.x.m.try("root", "sdiag")
	_, types, ok := strings.Cut(out, "by message type")
	if err != nil || !ok {
		return nil
	}
	types, _, _ = strings.Cut(types, "by user")
	n := map[string]int{}
	for _, m := range sdiagLine.FindAllStringSubmatch(types, -1) {
		n[m[1]], _ = strconv.Atoi(m[2])
	}
	return n
}

// countRPCs adds the messages since the last call. The test also calls it before it ends
// a controller.
func (e *monthMeter) countRPCs() {
	e.samples.Lock()
	defer e.samples.Unlock()
	now := e.readRPCs()
	if now == nil {
		return
	}
	restarted := false
	for name, n := range e.counted {
		restarted = restarted || now[name] < n
	}
	for name, n := range now {
		if !restarted {
			n -= e.counted[name]
		}
		e.rpcs[name] += n
	}
	e.counted = now
}

// sample adds up the memory and the processor time of the programs.
func (e *monthMeter) sample() {
	first, _ := strconv.Atoi(e.x.m.first)
	roots := append([]int{first}, e.x.running()...)
	var list []process.Stat
	for _, pid := range roots {
		more, _ := process.Descendants(pid)
		list = append(list, more...)
	}
	for _, pid := range append(e.x.proxyPIDs, os.Getpid()) {
		if st, err := process.ReadStat(pid); err == nil {
			list = append(list, st)
		}
	}
	e.samples.Lock()
	defer e.samples.Unlock()
	e.memory, e.processes = map[string]uint64{}, map[string]int{}
	for _, st := range list {
		dir := fmt.Sprintf("/proc/%d/", st.PID)
		comm, err := os.ReadFile(dir + "comm")
		if err != nil || st.State == 'Z' {
			continue
		}
		role := strings.TrimSpace(string(comm))
		switch {
		case st.PID == os.Getpid():
			role = "clients"
		case role == "schedrestd":
			role = "gateway: parents"
		case strings.HasPrefix(role, "schedrestd-work"):
			role = "gateway: workers"
		case strings.HasPrefix(role, "schedrestd-disp"):
			role = "gateway: dispatchers"
		case strings.HasPrefix(role, "schedrestd-"):
			role = "gateway: others"
		case role == "slurmctld", role == "slurmdbd", role == "haproxy":
		default:
			continue
		}
		id := [2]uint64{uint64(st.PID), st.Start}
		e.roles[id], e.ticks[id] = role, processorTicks(dir)
		bytes := process.Resident([]process.Stat{st}, true)
		e.memory[role] += bytes
		e.processes[role]++
	}
	for role, bytes := range e.memory {
		e.peak[role] = max(e.peak[role], bytes)
	}
}

// processorTicks returns the processor time of a process in hundredths of a second.
func processorTicks(dir string) uint64 {
	text, _ := os.ReadFile(dir + "stat")
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseUint(fields[11], 10, 64)
	system, _ := strconv.ParseUint(fields[12], 10, 64)
	return user + system
}

// table returns the tables of PERFORMANCE.md.
func (e *monthMeter) table(measured []string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var text strings.Builder
	total := 0
	text.WriteString("| requests | number | 200 | 304 | 503 | others | p50 | p99 |\n|---|---:|---:|---:|---:|---|---:|---:|\n")
	for _, kind := range slices.Sorted(maps.Keys(e.kinds)) {
		k, n, others := e.kinds[kind], 0, []string{}
		for _, status := range slices.Sorted(maps.Keys(k.statuses)) {
			n += k.statuses[status]
			if !slices.Contains([]string{"200", "304", "503"}, status) {
				others = append(others, fmt.Sprintf("%s: %d", status, k.statuses[status]))
			}
		}
		total += n
		p50, p99 := "", "" // a wait takes as long as its job
		if times := slices.Sorted(slices.Values(k.times)); len(times) > 0 && !strings.HasPrefix(kind, "wait") {
			p50, p99 = times[len(times)/2].Round(time.Millisecond/10).String(), times[len(times)*99/100].Round(time.Millisecond/10).String()
		}
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %d | %s | %s | %s |\n", kind, n, k.statuses["200"], k.statuses["304"], k.statuses["503"], strings.Join(others, ", "), p50, p99)
	}
	e.samples.Lock()
	defer e.samples.Unlock()
	seconds := map[string]float64{}
	for id, ticks := range e.ticks {
		seconds[e.roles[id]] += float64(ticks) / 100
	}
	text.WriteString("\n| program | processes | CPU | memory at the end | peak |\n|---|---:|---:|---:|---:|\n")
	for _, role := range slices.Sorted(maps.Keys(seconds)) {
		fmt.Fprintf(&text, "| %s | %d | %.1f s | %.1f MB | %.1f MB |\n", role, e.processes[role], seconds[role], float64(e.memory[role])/1e6, float64(e.peak[role])/1e6)
	}
	rpcs := 0
	for _, n := range e.rpcs {
		rpcs += n
	}
	fmt.Fprintf(&text, "\n%d clients, %.0f s, %d requests, %d RPCs at the controllers:", e.x.clients, e.length.Seconds(), total, rpcs)
	names := slices.SortedFunc(maps.Keys(e.rpcs), func(a, b string) int { return cmp.Compare(e.rpcs[b], e.rpcs[a]) })
	for _, name := range names[:min(6, len(names))] {
		fmt.Fprintf(&text, " %s %d", name, e.rpcs[name])
	}
	text.WriteString("\n\n")
	for _, line := range measured {
		fmt.Fprintf(&text, "- %s\n", line)
	}
	return text.String()
}

// checkStreams waits until all jobs have ended, and each stream shows what a fresh list has.
func (x *month) checkStreams() {
	t := x.t
	lists, jobs := map[*monthUser]map[string]string{}, 0
	for i, u := range x.users {
		c := &monthClient{month: x, user: u, proxy: x.proxies[i%monthProxies]}
		url := c.url("jobs/?" + monthFields)
		var known map[int]monthRecord
		eventually(t, "all jobs of "+u.name+" have ended", func() bool {
			a := c.send(x.work, "poll", "GET", url, "")
			known = map[int]monthRecord{}
			for _, r := range c.records(a, url) {
				if r.State[0] == "PENDING" || r.State[0] == "RUNNING" || slices.Contains(r.State, "COMPLETING") {
					return false
				}
				known[r.ID] = r
			}
			var list struct{ Jobs []map[string]any }
			must(t, json.Unmarshal(a.body, &list))
			lists[u] = map[string]string{}
			for _, j := range list.Jobs {
				lists[u][fmt.Sprint(j["job_id"])] = fmt.Sprint(j)
			}
			return true
		})
		for _, j := range u.jobs {
			if r := known[j.id]; !x.exposed(j) && (r.Name != j.name || r.State[0] != "COMPLETED") {
				x.fault("the job %d, %s, is %v", j.id, j.name, r)
			}
		}
		jobs += len(known)
	}
	events := map[string]int{}
	resumed, resets := 0, 0
	for _, f := range x.followers {
		eventually(t, "the stream of "+f.user.name+" shows the final states", func() bool { return maps.Equal(f.Seen().Records, lists[f.user]) })
		seen := f.Seen()
		for _, fault := range seen.Faults {
			x.fault("stream of %s: %s", f.user.name, fault)
		}
		for reason, n := range seen.Ends {
			events[reason] += n
		}
		resumed += seen.Resumed
		resets += seen.Resets
	}
	x.report("Streams: each of %d showed the final states of its user's jobs, %d in all. They were resumed %d times and begun again %d times. Ends: %v.", len(x.followers), jobs, resumed, resets, events)
}

// checkJobs checks that slurmdbd knows each submission once.
func (x *month) checkJobs() {
	t := x.t
	submitted := map[string]*monthJob{}
	for _, u := range x.users {
		for _, j := range u.jobs {
			submitted[j.name] = j
		}
	}
	// A job that has run twice, because of the failover, has a record for each time.
	var numbers map[string]map[string]bool
	eventually(t, "slurmdbd knows the ends of all jobs", func() bool {
		numbers = map[string]map[string]bool{}
		completed := map[string]bool{}
		for line := range strings.Lines(x.m.run(t, "root", "sacct", "-a", "-n", "-X", "-D", "-P", "-S", "now-1days", "-o", "jobname,jobid,state")) {
			fields := strings.Split(strings.TrimSpace(line), "|")
			if len(fields) != 3 || submitted[fields[0]] == nil {
				continue
			}
			if numbers[fields[0]] == nil {
				numbers[fields[0]] = map[string]bool{}
			}
			numbers[fields[0]][fields[1]] = true
			completed[fields[0]] = completed[fields[0]] || fields[2] == "COMPLETED"
		}
		for name, j := range submitted {
			if !completed[name] && !x.exposed(j) && !x.unrecorded(j) {
				return false
			}
		}
		return true
	})
	exposed, lost, doubled := 0, 0, 0
	for name, j := range submitted {
		switch n := len(numbers[name]); {
		case x.exposed(j):
			exposed++
			if n == 0 {
				lost++
			} else if n > 1 {
				doubled++
			}
		case n == 0 && x.unrecorded(j):
		case n != 1 || !numbers[name][strconv.Itoa(j.id)]:
			x.fault("jobs in slurmdbd for %s, which is the job %d: %v", name, j.id, numbers[name])
		}
	}
	for _, j := range x.unknown {
		if !x.exposed(j) {
			x.fault("404 for the job %d, %s", j.id, j.name)
		}
	}
	x.report("Submissions: %d, of which slurmdbd knows each that the controller had saved exactly once. When the first controller was killed, it had not saved %d at most; of these slurmdbd knows %d not at all, and %d twice.", len(submitted), exposed, lost, doubled)
}
