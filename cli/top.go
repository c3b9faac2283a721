package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/internal/printable"
)

// Control sequences for the screen of top.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	clearScreen = "\x1b[H\x1b[J"
)

// topRows is the maximum number of jobs that top shows with --once, or if the
// output is not a terminal.
const topRows = 20

func topCommand() *cobra.Command {
	var o options
	var f filter
	var interval time.Duration
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the load of the cluster and its largest jobs",
		Long: `top shows nodes and CPUs in use and the jobs with the most CPUs, and refreshes the screen
until q or Ctrl-C. With --once, or if the output is not a terminal, it prints them once.`,
		Args: atMost(0, ""),
	}
	o.connectFlags(cmd)
	f.flags(cmd)
	o.completeFilter(cmd)
	cmd.Flags().DurationVar(&interval, "interval", 3*time.Second, "time between two refreshes, at least 1s")
	cmd.Flags().BoolVar(&once, "once", false, "print once and exit")
	return setRun(cmd, func(cmd *cobra.Command, _ []string) error {
		if interval < time.Second {
			return usageError("--interval %s: shorter than 1s", interval)
		}
		c, err := o.dialWithFilter(cmd.Context(), &f)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		terminal := table.TerminalOf(out)
		view := newOverview(c, &f)
		if once || !terminal.IsTerminal() {
			if err := view.update(cmd.Context()); err != nil {
				return err
			}
			return joinErrors(view.print(out, terminal.Style(), topRows), c.checkNames(cmd.Context(), &f))
		}
		return view.show(cmd.Context(), terminal, interval)
	})
}

// show refreshes the screen until the user quits. It draws the screen when
// something has changed, and after each interval, because run times grow.
func (o *overview) show(ctx context.Context, terminal table.Terminal, interval time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	restore := onKey('q', stop)
	defer restore()
	io.WriteString(terminal.File, enterScreen)
	defer io.WriteString(terminal.File, leaveScreen)
	err := o.update(ctx)
	if err == nil {
		err = o.checkNames(ctx, o.filter)
	}
	if err != nil && ctx.Err() == nil && !isRetryable(err) {
		return err
	}
	o.failures[0] = err
	changed, failed := o.follow(ctx, interval)
	for ctx.Err() == nil {
		var frame bytes.Buffer
		_, lines := terminal.Size()
		if err := o.print(&frame, terminal.Style(), max(1, lines-6)); err != nil {
			return err
		}
		io.WriteString(terminal.File, clearScreen+strings.TrimRight(frame.String(), "\n"))
		select {
		case <-ctx.Done():
		case err := <-failed:
			return err
		case <-changed:
		case <-time.After(interval):
		}
	}
	return nil // users quit with q or Ctrl-C
}

// follow updates o until ctx ends. It sends to changed when what top shows may
// have changed, and to failed an error that does not go away.
func (o *overview) follow(ctx context.Context, interval time.Duration) (changed <-chan struct{}, failed <-chan error) {
	changes, failures := make(chan struct{}, 1), make(chan error, 2)
	follow := func(l *rest.List, failure *error, update func(context.Context) (rest.Meta, error)) {
		err := o.repeat(ctx, l, schedule{min: interval, max: interval}, func() (rest.Meta, bool, error) {
			m, err := update(ctx)
			o.mu.Lock()
			*failure = err
			o.mu.Unlock()
			select {
			case changes <- struct{}{}:
			default: // the screen is drawn soon
			}
			return m, false, err
		})
		if ctx.Err() == nil {
			failures <- err
		}
	}
	go follow(o.nodesRequest, &o.failures[0], o.updateNodes)
	go follow(o.jobsRequest, &o.failures[1], o.updateJobs)
	return changes, failures
}

// onKey calls callback when the user presses key. It returns a function that
// restores the settings of the terminal.
func onKey(key byte, callback func()) (restore func()) {
	in := int(os.Stdin.Fd())
	saved, err := unix.IoctlGetTermios(in, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	raw := *saved
	raw.Lflag &^= unix.ICANON | unix.ECHO
	if unix.IoctlSetTermios(in, unix.TCSETS, &raw) != nil {
		return func() {}
	}
	go func() {
		for buf := make([]byte, 1); ; {
			if n, err := os.Stdin.Read(buf); err != nil || n == 1 && buf[0] == key {
				callback()
				return
			}
		}
	}()
	return func() { unix.IoctlSetTermios(in, unix.TCSETS, saved) }
}

// A load counts nodes, in total and by state. It also contains the sums of
// their CPUs, memory and GPUs: all, those in use, and those that can't be used.
type load struct {
	nodes, allocated, mixed, idle, other int
	cpus, busyCPUs, memory, busyMemory   int64
	gpus, busyGPUs                       int64
	lostCPUs, lostMemory, lostGPUs       int64 // not in use, on nodes that jobs can't use
}

// inUse returns the number of nodes that run jobs.
func (l *load) inUse() int { return l.allocated + l.mixed }

// add adds the resources of n.
func (l *load) add(n *rest.Node) {
	l.nodes++
	down := slices.ContainsFunc(n.State, func(s string) bool {
		return s == "DOWN" || s == "DRAIN" || s == "FAIL" || s == "NOT_RESPONDING"
	})
	switch base := n.BaseState(); {
	case base == "ALLOCATED":
		l.allocated++
	case base == "MIXED":
		l.mixed++
	case base == "IDLE" && !down:
		l.idle++
	default:
		l.other++
	}
	cpus := cmp.Or(n.Effective.Int(), n.CPUs.Int())
	l.cpus += cpus
	l.busyCPUs += n.Allocated.Int()
	l.memory += n.Memory.Int()
	l.busyMemory += n.AllocMem.Int()
	used, total := n.GPUs()
	l.busyGPUs, l.gpus = l.busyGPUs+used, l.gpus+total
	if slices.ContainsFunc(n.State, func(s string) bool { return unusableStates[s] }) {
		l.lostCPUs += max(0, cpus-n.Allocated.Int())
		l.lostMemory += max(0, n.Memory.Int()-n.AllocMem.Int())
		l.lostGPUs += max(0, total-used)
	}
}

// unusableStates are states of a node, and additions to its state, in which no
// job can start. It can on a node that is powered down, which this switches on.
var unusableStates = map[string]bool{
	"DOWN": true, "ERROR": true, "FUTURE": true, "UNKNOWN": true, "DRAIN": true, "FAIL": true, "NOT_RESPONDING": true, "INVALID_REG": true, "MAINTENANCE": true,
	"REBOOT_ISSUED": true, "POWERING_DOWN": true, "POWERING_UP": true, "POWER_DOWN": true, "POWER_UP": true,
}

// loadFields are the fields of a node that a load needs.
const loadFields = "state,cpus,effective_cpus,alloc_cpus,real_memory,alloc_memory,gres,gres_used"

// An overview contains what top shows: the load of the cluster, and the jobs
// that a filter selects.
type overview struct {
	*connection
	filter       *filter
	columns      listing[*rest.Job]
	nodesRequest *rest.List
	jobsRequest  *rest.List

	mu       sync.Mutex // guards the fields below
	load     load
	jobs     []*rest.Job // sorted
	failures [2]error    // of the last requests for nodes and jobs
}

func newOverview(c *connection, f *filter) *overview {
	o := &overview{connection: c, filter: f, columns: listing[*rest.Job]{columns: jobColumns()}}
	o.nodesRequest = &rest.List{Fields: []string{loadFields}}
	o.jobsRequest = f.jobs(o.columns.fields())
	return o
}

// update requests the nodes and the jobs. What has not changed since the last
// update is kept.
func (o *overview) update(ctx context.Context) error {
	if _, err := o.updateNodes(ctx); err != nil {
		return err
	}
	_, err := o.updateJobs(ctx)
	return err
}

func (o *overview) updateNodes(ctx context.Context) (rest.Meta, error) {
	var l load
	m, err := o.Nodes(ctx, o.nodesRequest, func(n *rest.Node, _ json.RawMessage) error { l.add(n); return nil })
	if err != nil || m.Unchanged {
		return m, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.load = l
	return m, nil
}

func (o *overview) updateJobs(ctx context.Context) (rest.Meta, error) {
	var jobs []*rest.Job
	m, err := o.selectJobs(ctx, o.jobsRequest, o.filter, func(j *rest.Job) { jobs = append(jobs, trimJob(j)) })
	if err != nil || m.Unchanged {
		return m, err
	}
	slices.SortFunc(jobs, func(a, b *rest.Job) int { // by state (running first), CPUs (most first) and id
		if ra, rb := a.BaseState() == "RUNNING", b.BaseState() == "RUNNING"; ra != rb {
			if ra {
				return -1
			}
			return 1
		}
		if d := b.CPUs.Int() - a.CPUs.Int(); d != 0 {
			return int(d)
		}
		return int(int64(a.ID) - int64(b.ID))
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.jobs = jobs
	return m, nil
}

// print prints the load of the cluster and a list of jobs. The list has at most
// the given number of rows. If a list could not be requested, the last line says
// why.
func (o *overview) print(w io.Writer, style table.Style, rows int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	running, pending := 0, 0
	for _, j := range o.jobs {
		switch j.BaseState() {
		case "RUNNING":
			running++
		case "PENDING":
			pending += j.PendingCount()
		}
	}
	l := &o.load
	cpus, memory, gpus := l.cpus-l.lostCPUs, l.memory-l.lostMemory, l.gpus-l.lostGPUs // that jobs use or can use
	lines := []string{
		fmt.Sprintf("%s  %s  %s", time.Now().Format("15:04:05"), o.Server(), o.Version()),
		fmt.Sprintf("Nodes %d: %d allocated, %d mixed, %d idle, %d other",
			l.nodes, l.allocated, l.mixed, l.idle, l.other),
		fmt.Sprintf("CPUs %s %d of %d   Memory %s %s of %s",
			bar(l.busyCPUs, cpus), l.busyCPUs, cpus,
			bar(l.busyMemory, memory), formatMemory(l.busyMemory), formatMemory(memory)),
	}
	if l.lostCPUs > 0 {
		lines[2] += fmt.Sprintf("   %d CPUs unavailable", l.lostCPUs)
	}
	if l.gpus > 0 {
		lines = append(lines, fmt.Sprintf("GPUs %s %d of %d", bar(l.busyGPUs, gpus), l.busyGPUs, gpus))
	}
	lines = append(lines, fmt.Sprintf("Jobs %d running, %d pending", running, pending))
	for _, line := range lines {
		if style.Width > 0 {
			line = table.Cut(line, style.Width)
		}
		fmt.Fprintln(w, line)
	}
	err := o.columns.table(o.jobs[:min(rows, len(o.jobs))]).Write(w, style)
	for _, failure := range o.failures {
		if failure != nil && err == nil {
			_, err = fmt.Fprintf(w, "%s\n", printable.Text(failure.Error()))
			break
		}
	}
	return err
}

// bar returns a bar that shows the fraction used/total.
func bar(used, total int64) string {
	const length = 20
	filled := 0
	if total > 0 {
		filled = int(min(length, used*length/total))
	}
	return "[" + strings.Repeat("|", filled) + strings.Repeat(" ", length-filled) + "]"
}
