package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"schedrestd/docs"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

const logHint = "journalctl -u schedrestd -o cat | schedctl explain REQUEST-ID"

// explainRequestCommand returns the command that says why the gateway refused a
// request.
func explainRequestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain REQUEST-ID [FILE...]",
		Short: "Say why the gateway refused a request",
		Long: `Find a request in the log of the gateway, and say why it was refused and what to do. Clients get
the id of a request in the header X-Request-Id of the answer. The command reads standard input or
files: the log in any of its formats, as text from journald, and the audit log.

The causes and remedies are those of the page TROUBLESHOOTING.md. Lines of workers and the
audit log may name users, so usually only root can read them.`,
		Example: "  " + strings.Replace(logHint, "REQUEST-ID", "LHFVPXGNT3VZHLFHWXB45M4D6U", 1) + "\n  schedctl explain LHFVPXGNT3VZHLFHWXB45M4D6U /var/log/schedrestd/*.log",
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) == 0 || words[0] == "" {
				return errs.New(errs.Malformed, "explain: no request is named").WithHint("%s", logHint)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			s := newLogSearch(words[0])
			if len(words) == 1 {
				if in, ok := cmd.InOrStdin().(*os.File); ok && isTerminal(in) {
					return errs.New(errs.Malformed, "explain: standard input is a terminal").WithHint("%s", logHint)
				}
				words = append(words, "-")
			}
			for _, path := range words[1:] {
				if err := s.readFile(path, cmd.InOrStdin()); err != nil {
					return err
				}
			}
			return s.explain(cmd.OutOrStdout())
		},
	}
}

// A logSearch looks for the lines of a log that are about a request.
type logSearch struct {
	id       string
	form     *regexp.Regexp
	lines    []string          // with the id
	request  map[string]string // fields of the request's own line; nil for none
	text     []string          // of lines that may contain the cause
	refusals []string          // lines of the dispatcher so far: it refuses connections and blocks sources before it knows a request
	omitted  bool              // the log says that it lacks lines
}

func newLogSearch(id string) *logSearch {
	return &logSearch{id: id, form: regexp.MustCompile(`(^|[^A-Za-z0-9])` + regexp.QuoteMeta(id) + `($|[^A-Za-z0-9])`)}
}

func (s *logSearch) readFile(path string, in io.Reader) error {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		s.add(scanner.Text())
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return errs.New(errs.Malformed, "read %s: a line has more than 1 MiB", path).WithHint("this is no log of the gateway: %s", logHint)
	}
	return scanner.Err()
}

func (s *logSearch) add(line string) {
	switch {
	case s.form.MatchString(line):
		s.lines, s.text = append(s.lines, line), append(s.text, line)
		if fields := fieldsOf(line); fields["status"] != "" {
			s.request = fields
		}
	case strings.Contains(line, "connection refused") && strings.Contains(line, "refused_so_far"), strings.Contains(line, "source blocked"):
		s.refusals = append(s.refusals, line)
	case strings.Contains(line, "log lines left out"):
		s.omitted = true
	}
}

// pair matches a field of a line in slog's text format.
var pair = regexp.MustCompile(`(?:^| )([a-z][a-z0-9_]*)=("(?:[^"\\]|\\.)*"|[^ "]*)`)

// fieldsOf returns the fields of a line, as text or as JSON.
func fieldsOf(line string) map[string]string {
	fields := map[string]string{}
	var object map[string]any
	if at := strings.IndexByte(line, '{'); at >= 0 && json.Unmarshal([]byte(line[at:]), &object) == nil {
		for name, value := range object {
			fields[name] = fmt.Sprint(value)
		}
		return fields
	}
	for _, m := range pair.FindAllStringSubmatch(line, -1) {
		value := m[2]
		if text, err := strconv.Unquote(value); err == nil {
			value = text
		}
		fields[m[1]] = value
	}
	return fields
}

// explain prints what is known about the request.
func (s *logSearch) explain(w io.Writer) error {
	if len(s.lines) == 0 {
		hint := "a client finds the id in X-Request-Id; the log of another gateway, or an older one, may have it"
		if s.omitted {
			hint = `the log lacks lines ("log lines left out"): LOGS.md, Omitted lines`
		}
		return errs.New(errs.NotFound, "no line of this log has the request %s", printable.Text(s.id)).WithHint("%s", hint)
	}
	r := s.request
	status, _ := strconv.Atoi(r["status"])
	if r["peer"] != "" && status >= http.StatusBadRequest {
		s.addRefusal(r)
	}
	var out strings.Builder
	say := func(name, format string, args ...any) {
		if text := printable.Text(fmt.Sprintf(format, args...)); text != "" {
			fmt.Fprintf(&out, "%-8s %s\n", name, text)
		}
	}
	say("time", "%s", r["time"])
	say("request", "%s", strings.TrimSpace(r["method"]+" "+r["path"]))
	say("client", "%s", strings.TrimSpace(r["peer"]+" "+cmp.Or(r["user"], r["unverified_user"])))
	if status > 0 {
		say("status", "%d %s", status, http.StatusText(status))
	}
	for _, line := range s.text {
		fields := fieldsOf(line)
		say("because", "%s", cmp.Or(fields["because"], fields["error"]))
		say("hint", "%s", fields["hint"])
	}
	remedies := remediesFor(status, r["path"], strings.Join(s.text, "\n"))
	for _, remedy := range remedies {
		say("remedy", "%s", remedy)
	}
	switch {
	case status > 0 && status < http.StatusBadRequest:
		say("", "The gateway did not refuse the request.")
	case status == 0:
		say("", "The request has no line of its own here: it is still served, or the log lacks lines.")
	case len(remedies) == 0:
		say("", "TROUBLESHOOTING.md has no remedy for this.")
	}
	out.WriteString("\n")
	for _, line := range s.text {
		fmt.Fprintln(&out, printable.Text(line))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// addRefusal adds the last line in which the dispatcher refused a connection of
// the client, or blocked its address. These lines have no request's id.
func (s *logSearch) addRefusal(r map[string]string) {
	address := cmp.Or(r["forwarded_for"], r["peer"])
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	for _, line := range slices.Backward(s.refusals) {
		fields := fieldsOf(line)
		if fields["peer"] == r["peer"] || r["status"] == "429" && slices.Contains([]string{fields["source"], fields["forwarded_for"]}, address) {
			s.text = append(s.text, line)
			return
		}
	}
}

var (
	statusForm = regexp.MustCompile(`\b[45]\d\d\b`)
	codeForm   = regexp.MustCompile("`([^`]+)`")
	linkForm   = regexp.MustCompile(`\[([^\]]+)\]\(([^)#]*)[^)]*\)`)
)

// remediesFor returns the causes and remedies in the table of TROUBLESHOOTING.md
// that fit an answer's status, the path and the text of the log. An error names its
// cause last, so if several rows fit, those whose texts end last are returned, and of
// these the ones with the longest texts.
func remediesFor(status int, path, log string) (remedies []string) {
	best := match{}
	for line := range strings.Lines(docs.Troubleshooting) {
		cells := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "| \n"), " | ")
		if len(cells) != 3 || !slices.Contains(statusForm.FindAllString(cells[0], -1), strconv.Itoa(status)) {
			continue
		}
		if strings.Contains(cells[0], "`/slurmdb/`") && !strings.HasPrefix(path, "/slurmdb/") && !strings.HasPrefix(path, "/scheddb/") {
			continue
		}
		m := bestMatch(cells[1], log)
		if m.compare(best) < 0 || m == (match{}) {
			continue
		}
		if m != best {
			best, remedies = m, nil
		}
		symptom := strings.TrimSpace(strings.ReplaceAll(cells[0], "✓", ""))
		remedy := linkForm.ReplaceAllStringFunc(cells[2], func(link string) string {
			m := linkForm.FindStringSubmatch(link)
			if m[1] == m[2] || m[2] == "" {
				return m[1]
			}
			return m[1] + " (" + m[2] + ")"
		})
		if _, more, ok := strings.Cut(symptom, ", "); ok { // such as "with B"
			remedy = "(" + more + ") " + remedy
		}
		remedies = append(remedies, strings.ReplaceAll(remedy, "\x00", "|"))
	}
	return remedies
}

// A match is where a text of a row is in the log.
type match struct{ end, length int }

func (m match) compare(n match) int {
	return cmp.Or(cmp.Compare(m.end, n.end), cmp.Compare(m.length, n.length))
}

// bestMatch returns the last and longest text in the second cell of a row that the
// log contains, and nothing for none. The parts of a text are in backquotes, with an
// ellipsis between them.
func bestMatch(cell, log string) (best match) {
	text, found, end := match{}, false, 0
	for _, at := range codeForm.FindAllStringSubmatchIndex(cell, -1) {
		part := cell[at[2]:at[3]]
		if end == 0 || !strings.Contains(cell[end:at[0]], "…") {
			text, found = match{}, true
		}
		found = found && strings.Contains(log, part)
		text, end = match{strings.LastIndex(log, part) + len(part), text.length + len(part)}, at[1]
		if found && !strings.HasPrefix(cell[end:], " …") && text.compare(best) > 0 {
			best = text
		}
	}
	return best
}
