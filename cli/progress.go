package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/internal/printable"
)

// The type progress shows the state of a job. On a terminal it updates one
// line. Otherwise it prints a line for each change.
type progress struct {
	id       string // of the job
	w        io.Writer
	terminal table.Terminal
	style    table.Style
	stop     chan struct{} // closed by finish

	mu       sync.Mutex // guards the fields below
	jobs     []rest.Job
	lastLine string
}

func newProgress(w io.Writer, id string) *progress {
	t := table.TerminalOf(w)
	p := &progress{id: id, w: w, terminal: t, style: t.Style(), stop: make(chan struct{})}
	if t.IsTerminal() {
		go p.tick()
	}
	return p
}

// tick shows the run time each second, because the server answers only when the
// job's state changes.
func (p *progress) tick() {
	for {
		select {
		case <-p.stop:
			return
		case <-time.After(time.Second):
		}
		p.mu.Lock()
		if p.jobs != nil {
			p.draw()
		}
		p.mu.Unlock()
	}
}

func (p *progress) show(jobs []rest.Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = jobs
	p.draw()
}

func (p *progress) draw() {
	jobs := p.jobs
	state, color := summary(jobs)
	line := "job " + printable.Text(p.id) + " " + state
	if !p.terminal.IsTerminal() {
		if line != p.lastLine {
			fmt.Fprintln(p.w, line)
		}
		p.lastLine = line
		return
	}
	if len(jobs) == 1 && jobs[0].BaseState() == "RUNNING" {
		line += " " + formatDuration(jobs[0].Elapsed(time.Now()))
	}
	if columns := p.style.Width; columns > 1 {
		line = table.Cut(line, columns-1)
	}
	if p.style.Color && color != table.Plain {
		line = table.Paint(line, color)
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
	p.lastLine = line
}

// finish writes a newline, so that the last state stays on the terminal.
func (p *progress) finish() {
	close(p.stop)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = nil
	if p.terminal.IsTerminal() && p.lastLine != "" {
		fmt.Fprintln(p.w)
	}
}

// summaryFields are the fields that summary shows.
const summaryFields = "job_state,nodes,state_reason,state_description,exit_code"

// summary describes the states of jobs. For a single job it describes the state
// in detail. For several jobs it returns the number of jobs in each state.
func summary(jobs []rest.Job) (string, table.Color) {
	if len(jobs) == 1 {
		j := &jobs[0]
		text := printable.Text(strings.Join(j.State, "+"))
		switch {
		case !j.Active():
			if o := outcome(j); o != successOutcome {
				text += ", " + printable.Text(o)
			}
		case j.Nodes != "":
			text += " on " + printable.Text(j.Nodes)
		case reasonOf(j) != "":
			text += " (" + printable.Text(j.Reason) + ")"
		}
		if description := descriptionOf(j); description != "" {
			text += ": " + printable.Text(description)
		}
		return text, stateColor(j.State)
	}
	counts := map[string]int{}
	for i := range jobs {
		counts[jobs[i].BaseState()]++
	}
	var parts []string
	for state, n := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", printable.Text(state), n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", "), table.Plain
}
