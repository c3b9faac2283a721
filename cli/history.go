package cli

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/internal/printable"
	"schedrestd/model"
)

// A historyRequest is the command history with its options.
type historyRequest struct {
	options
	filter
	period
	list listing[*rest.Job]
}

func historyCommand() *cobra.Command {
	h := historyRequest{list: listing[*rest.Job]{columns: historyColumns()}}
	cmd := &cobra.Command{
		Use:   "history [ID...]",
		Short: "List jobs in the accounting records",
		Long: `history lists jobs that existed at any time since today's midnight, or in the period that
--since and --until select. With ids it lists these jobs, however old they are. If you give
ids and options, it lists only those of the named jobs that the options select. A job that was
requeued has a line for each run, as with sacct -D.

` + timeForms,
		Example: "  schedctl history --me --since 7d --state FAILED\n  schedctl history 12 13 -o json",
		Args:    cobra.ArbitraryArgs,
	}
	h.connectFlags(cmd)
	h.outputFlag(cmd, "wide")
	h.filter.flags(cmd)
	h.list.flags(cmd)
	h.period.flags(cmd, "today, or no limit with ids", "now")
	h.completeFilter(cmd)
	return setRun(cmd, h.run)
}

func (h *historyRequest) run(cmd *cobra.Command, ids []string) error {
	if err := h.list.check(h.output); err != nil {
		return err
	}
	ids, err := expandIDs(ids)
	if err != nil {
		return err
	}
	if h.since == "" && len(ids) == 0 {
		h.since = "today"
	}
	query := url.Values{}
	if err := h.addTo(query, "start_time", "end_time", time.Now()); err != nil {
		return err
	}
	c, err := h.dialWithFilter(cmd.Context(), &h.filter)
	if err != nil {
		return err
	}
	h.all = true // ended jobs are the usual case
	h.narrow(query)
	out := cmd.OutOrStdout()
	d, w := h.document(out, "jobs"), newWanted("job", "", ids)
	var rows []*rest.Job
	request := rest.List{Fields: rest.AccountingFields}
	add := func(j *rest.Job, _ json.RawMessage) error { rows = append(rows, trimJob(j)); return nil }
	if d != nil {
		request.Fields = nil
		add = func(_ *rest.Job, text json.RawMessage) error { return d.Add(text) }
	}
	listed := map[string]bool{} // labels of jobs that an earlier request has listed
	for _, request.Query = range queries(query, ids) {
		if err := h.each(cmd.Context(), c, request, w, listed, add); err != nil {
			return err
		}
	}
	return writeResult(out, d, h.list.table(sortJobs(rows)), joinErrors(w.check(), c.checkNames(cmd.Context(), &h.filter)))
}

// each calls add for the jobs in the answer to one request, except those that an
// earlier one has listed.
func (h *historyRequest) each(ctx context.Context, c *connection, request rest.List, w *wanted, listed map[string]bool, add func(*rest.Job, json.RawMessage) error) error {
	var labels []string // not yet in listed: a job may have several records
	err := c.AccountingJobs(ctx, &request, func(j *rest.Job, text json.RawMessage) error {
		if !w.hasJob(j) || !h.matches(j) || listed[j.Label()] {
			return nil
		}
		labels = append(labels, j.Label())
		return add(j, text)
	})
	for _, label := range labels {
		listed[label] = true
	}
	return err
}

// hasJob reports whether the user wants the job j, which the server has listed.
func (w *wanted) hasJob(j *rest.Job) bool {
	has := len(w.names) == 0
	for _, id := range w.names {
		if j.Selects(id) {
			has, w.seen[id] = true, true
		}
	}
	return has
}

// narrow adds conditions to a request for accounting records, so that the
// server sends fewer records that f does not select. It adds no lists, because
// slurmrestd does not decode a comma in some of its parameters. The state is not
// a condition, because the server would select jobs that once had this state.
func (f *filter) narrow(query url.Values) {
	for name, values := range map[string][]string{"users": f.users, "account": f.accounts, "partition": f.partitions, "job_name": f.names} {
		if len(values) == 1 && !strings.Contains(values[0], ",") {
			query.Set(name, values[0])
		}
	}
	if len(f.nodes) > 0 {
		query.Set("node", model.FoldHosts(f.nodes))
	}
}

// queries returns the requests for the jobs with the given ids: one for each
// id or, if there are no ids, one for all jobs.
func queries(query url.Values, ids []string) []url.Values {
	if len(ids) == 0 {
		return []url.Values{query}
	}
	var list []url.Values
	for _, id := range ids {
		q := maps.Clone(query)
		q.Set("step", id)
		list = append(list, q)
	}
	return list
}

// timeForms says how times are written.
const timeForms = `A time is YYYY-MM-DD, YYYY-MM-DDTHH:MM[:SS], HH:MM of today, today, yesterday, or a
number of minutes, hours, days or weeks ago: 90m, 12h, 7d or 4w.`

// A period contains the options for a period. An empty text stands for no limit.
type period struct{ since, until string }

// flags declares the options. The begin and end arguments are their defaults, for
// people.
func (p *period) flags(cmd *cobra.Command, begin, end string) {
	cmd.Flags().StringVar(&p.since, "since", "", "begin of the period (default: "+begin+")")
	cmd.Flags().StringVar(&p.until, "until", "", "end of the period (default: "+end+")")
	cmd.RegisterFlagCompletionFunc("since", cobra.FixedCompletions([]string{"today", "yesterday", "7d"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("until", cobra.FixedCompletions([]string{"today", "yesterday", "now"}, cobra.ShellCompDirectiveNoFileComp))
}

// addTo adds the period to a request, as parameters with these names.
func (p *period) addTo(query url.Values, begin, end string, now time.Time) error {
	var times [2]time.Time
	for i, option := range []struct{ name, parameter, text string }{{"--since", begin, p.since}, {"--until", end, p.until}} {
		if option.text == "" {
			continue
		}
		t, ok := parseTime(option.text, now)
		if !ok {
			return usageError("%s %s: not a time", option.name, printable.Text(option.text)).
				WithHint("use YYYY-MM-DD[THH:MM[:SS]], HH:MM, today, yesterday, or a time ago such as 12h, 7d or 4w")
		}
		times[i] = t
		query.Set(option.parameter, strconv.FormatInt(t.Unix(), 10))
	}
	if p.until == "" && times[0].After(now) {
		return usageError("--since %s: in the future", printable.Text(p.since))
	}
	if p.since != "" && p.until != "" && !times[0].Before(times[1]) {
		return usageError("--until %s: not after --since", printable.Text(p.until))
	}
	return nil
}

// parseTime parses a time in the forms that the help of history lists.
func parseTime(text string, now time.Time) (time.Time, bool) {
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch text {
	case "now":
		return now, true
	case "today":
		return midnight, true
	case "yesterday":
		return midnight.AddDate(0, 0, -1), true
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, true
		}
	}
	if t, err := time.Parse("15:04", text); err == nil {
		return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location()), true
	}
	units := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour}
	number, unit := text[:len(text)-1], text[len(text)-1]
	n, err := strconv.ParseUint(number, 10, 16)
	switch {
	case err != nil:
		return time.Time{}, false
	case unit == 'd':
		return now.AddDate(0, 0, -int(n)), true
	case unit == 'w':
		return now.AddDate(0, 0, -7*int(n)), true
	}
	return now.Add(-time.Duration(n) * units[unit]), units[unit] > 0
}

// resultCell returns a cell with the state of j and, as sacct does, the user who has
// cancelled it.
func resultCell(j *rest.Job) table.Cell {
	c := stateCell(j.State)
	c.Text += cancelledBy(j)
	return c
}

// cancelledBy returns " by USER" if accounting knows that a user has cancelled j.
func cancelledBy(j *rest.Job) string {
	if j.KilledBy == "" || j.BaseState() != "CANCELLED" {
		return ""
	}
	return " by " + j.KilledBy
}

// historyColumns returns the columns of lists of accounting records.
func historyColumns() []column[*rest.Job] {
	columns := jobColumns()
	for i := range columns {
		c := &columns[i]
		c.extra = !slices.Contains([]string{"jobid", "partition", "name", "user", "state", "time", "cpus", "started", "exit", "nodelist"}, c.name)
		switch c.name {
		case "nodelist":
			c.Column = table.Column{Heading: "NODELIST(REASON)", Shrink: 8, Rank: 1, Drop: 3}
		case "state":
			c.Shrink, c.cell = 0, resultCell // the result of the job is what users look for
		case "started":
			c.Drop = 5
		}
	}
	return columns
}
