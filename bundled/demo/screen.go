package demo

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/site"
	"schedrestd/internal/guard"
)

// screen prints the demo's output.
type screen struct {
	io.Writer
	terminal  bool // the output is a terminal, so a line can be overwritten
	overwrite bool // the next output overwrites the current line
}

func newScreen(w io.Writer) screen {
	f, ok := w.(*os.File)
	if !ok {
		return screen{Writer: w}
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return screen{Writer: w, terminal: err == nil}
}

func (s *screen) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// update prints a line that overwrites the current line. If the output is not a
// terminal, update prints a separate line instead.
func (s *screen) update(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if !s.terminal {
		s.printf("%s\n", line)
		return
	}
	s.printf("\r%s\x1b[K", line)
	s.overwrite = true
}

// endLine ends a line that was printed by update.
func (s *screen) endLine() {
	if s.overwrite {
		s.printf("\n")
		s.overwrite = false
	}
}

func (s *screen) printTitle(st *stage) {
	s.printf("schedrestd demo in %s\n\n", st.Stage)
}

func (s *screen) printReady(role string, p site.Part, after time.Duration) {
	s.printf("  %-10s  %-10s  %-23s  ready in %d ms\n", p.Name, role, p.Address, after.Milliseconds())
}

// printIdentities prints which users the demo's processes run as.
func (s *screen) printIdentities(st *stage) {
	if os.Geteuid() == 0 {
		s.printf("\nJobs run as %s. The process that reads network data runs as %s.\n", st.user, site.Nobody)
		return
	}
	s.printf(`
All processes run as %s, including jobs and the process that reads network data. schedrestd
normally refuses that; the demo sets SCHEDRESTD_SECURITY=disable_user_check.
`, st.user)
}

// printWelcome prints commands with which the user can try the demo. Each can
// be pasted without changes.
func (s *screen) printWelcome(st *stage) {
	g := st.gateway
	curl := "curl -H @" + guard.Quote(st.tokenFile())
	s.printf(`The demo keeps running. Paste lines of the following into another terminal.

The command line:

. %s    # sets PATH, SCHED_URL and SCHED_JWT
schedctl nodes
printf '#!/bin/sh\nsleep 5; hostname\n' | schedctl submit --wait -
schedctl jobs --all

HTTP requests (-H takes the token from a file):

%s %s
%s %s
%s -H 'Content-Type: application/json' -d %s %s

In a browser, with the token of %s below, valid for %d hours:

%s/status
SCHED_JWT=%s

The job of curl writes its output to %s.
Ctrl-C stops everything, including jobs, and removes the directory.
`, guard.Quote(st.envFile()),
		curl, g.URL("sched", "ping"),
		curl, g.URL("sched", "node", st.Node),
		curl, guard.Quote(st.exampleBody()), g.URL("sched", "job", "submit"),
		st.user, int(tokenLifespan.Hours()), st.url, st.token,
		st.jobDir())
}

// printLastLines writes the last lines of d's log to w.
func (s *screen) printLastLines(w io.Writer, d *site.Daemon) {
	s.endLine()
	lines := d.LastLines(15)
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\nLast log lines of %s:\n\n", d.Name)
	for _, line := range lines {
		fmt.Fprintf(w, "  | %s\n", line)
	}
	fmt.Fprintln(w)
}
